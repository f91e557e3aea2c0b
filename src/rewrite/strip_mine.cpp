// Strip mining: a recurrence of n C steps is one of n steps, each of them a recurrence of C. What remembers
// every old state of the outer one remembers n of them. Steps that fill no segment follow as a recurrence of
// their own.
#include "tang/ir/recurrence.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

using ir::Extent;
using ir::Recur;

namespace {
bool moves_in_time(const std::vector<Form>& view) {
  for (auto& f : view)
    if (f.axis(0) != 0) return true;
  return false;
}

// A view over (time, dims) as one over (segment, step inside it, dims): time is C segment + step.
std::vector<Form> mined(const std::vector<Form>& view, int64_t block) {
  std::vector<Form> out;
  for (auto& f : view)
    out.push_back(
        ir::compose(f, [&](int a) { return a == 0 ? ir::axis(0, block) + ir::axis(1) : ir::axis(a + 1); }));
  return out;
}

class Miner {
public:
  Miner(const Recur& r, int64_t block, const ir::Symbols& symbols) : r_(r), block_(block) {
    outer_.symbols = symbols;
  }

  Recur run() {
    Recur out;
    out.steps = Extent(r_.steps.value() / block_);
    out.reverse = r_.reverse;
    out.time = outer_.add({ir::Input{ir::Input::data, {}, clock().format}, "segment", {}});
    step_with_time();
    inner_.steps = Extent(block_);
    inner_.reverse = r_.reverse;
    for (auto& s : r_.states) {
      const Node& in = (*r_.step)[s.in];
      const NodeId now = outer_.add({*in.input(), in.name, in.where});
      out.states.push_back({s.init, now, {}});
      inner_.states.push_back({Port{now, 0}, at({s.in, 0}).node, at(s.out)});
    }
    for (auto& a : r_.args) argument(a, out);
    if (segment_) inner_.args.push_back({{out.time, 0}, {}, *segment_});
    for (auto& e : r_.emits) {
      const std::vector<Extent> shape = with_front(Extent(block_), inner_step_.shape(at(e.out)));
      inner_.emits.push_back({at(e.out), every(shape.size()), shape});
    }
    inner_.step = std::make_shared<const Graph>(std::move(inner_step_));
    const NodeId inner = outer_.add({inner_, "segment", {}});
    const uint32_t states = uint32_t(r_.states.size());
    for (uint32_t k = 0; k < states; ++k) out.states[k].out = {inner, k};
    for (uint32_t k = 0; k < r_.emits.size(); ++k)
      out.emits.push_back({{inner, states + k}, mined(r_.emits[k].view, block_), r_.emits[k].shape});
    for (uint32_t k = 0; k < outer_.ports(inner); ++k)
      outer_.outputs.push_back({{inner, k},
                                (k < states ? "next " : "emit ") + std::to_string(k),
                                ir::default_format(outer_.type({inner, k}))});
    out.step = std::make_shared<const Graph>(std::move(outer_));
    return out;
  }

private:
  const ir::Input& clock() const { return *(*r_.step)[r_.time].input(); }

  Port at(Port p) const { return ports_.at(p); }

  // Its time is made of the segment's number and the step's inside it, where anything reads it.
  void step_with_time() {
    Stepped x = with_time(r_, [&](Graph& g, Comp& time, Id now) {
      segment_ = g.add({ir::Input{ir::Input::data, {}, clock().format}, fresh_name(), {}});
      const Id s = read_leaf(g.pool, Type::index, add_read(time, {{*segment_, 0}, {}}));
      return g.pool.make(Op::add, {g.pool.make(Op::mul, {g.pool.literal(expr::whole(block_)), s}), now});
    });
    ports_ = std::move(x.ports), inner_step_ = std::move(x.step), inner_.time = x.time;
  }

  std::string fresh_name() const {
    std::string name = "segment";
    for (bool taken = true; taken;) {
      taken = false;
      for (auto& n : r_.step->nodes) taken |= n.input() && n.name == name;
      if (taken) name += "_";
    }
    return name;
  }

  // An argument that moves in time is cut to the segment's part of it first.
  void argument(const Recur::Read& a, Recur& out) {
    const Node& in = (*r_.step)[a.in];
    const bool moves = moves_in_time(a.view);
    ir::Input x = *in.input();
    const size_t dims = x.shape.size();
    if (moves) x.shape = with_front(Extent(block_), x.shape);
    const NodeId now = outer_.add({x, in.name, in.where});
    out.args.push_back({a.from, moves ? mined(a.view, block_) : a.view, now});
    inner_.args.push_back({{now, 0}, moves ? every(dims + 1) : every(dims, 1), at({a.in, 0}).node});
  }

  const Recur& r_;
  const int64_t block_;
  Graph outer_, inner_step_;
  Recur inner_;
  std::map<Port, Port> ports_;    // of the step, now
  std::optional<NodeId> segment_; // the inner step's input
};
} // namespace

Result<Rewritten> strip_mine(const Graph& g, NodeId id, int64_t block) {
  if (const std::string why = why_no_segments(g, id, block); !why.empty()) return Refusal{why};
  Edit e(g);
  for (NodeId k = 0; k < g.nodes.size(); ++k) {
    if (!e.live[k]) continue;
    Node n = e.node(k);
    if (k != id) {
      e.put(k, std::move(n));
      continue;
    }
    const auto mined = [&](const Recur& r) -> Result<std::vector<Port>> {
      const NodeId now = e.to.add({Miner(r, block, e.to.symbols).run(), n.name, n.where});
      std::vector<Port> ports;
      for (uint32_t p = 0; p < e.to.ports(now); ++p) ports.push_back({now, p});
      return ports;
    };
    const auto ports = in_segments(e.to, *n.recur(), block, n, mined);
    for (uint32_t p = 0; p < ports->size(); ++p) e.set({k, p}, (*ports)[p]);
  }
  return Rewritten{e.finish(), {g.label({id, 0}) + " in segments of " + std::to_string(block)}};
}

namespace {
Graph strip_mine_witness() {
  ir::Builder b;
  auto x = b.input("x", {8, 3}), w = b.input("w", {3, 3}), h0 = b.input("h0", {3});
  const ir::Axis t = ir::axis("t", Extent(8)), u = ir::axis("u", Extent(3)), k = ir::axis("k", Extent(3));
  const auto r = ir::recur(t, {ir::carried("h", h0)}, [&](const std::vector<ir::Tensor>& old) -> ir::Step {
    const ir::Scalar late = ir::to_real(ir::iota(t));
    auto next = ir::map({u}, tanh(x(t, u) + late * 0.1 + sum(k, w(u, k) * old[0](k))));
    return {{next}, {next}};
  });
  b.output(r.states[0], "last");
  b.output(r.emits[0], "all");
  return b.graph();
}
} // namespace

Rule strip_mine_rule() {
  auto apply = [](const Graph& g) -> Result<Rewritten> {
    for (NodeId id = 0; id < g.nodes.size(); ++id)
      if (const Recur* r = g[id].recur(); r && r->steps.is_constant())
        for (int64_t block : {3, 2})
          if (r->steps.value() >= block) return strip_mine(g, id, block);
    return Refusal{"no recurrence of two steps"};
  };
  return {"strip_mine",
          {"a recurrence over n C + r steps is one over n segments, whose step is the recurrence over C, "
           "then one over r",
           "strip_mine_sound", Law::exact},
          apply,
          strip_mine_witness,
          true};
}

} // namespace tang::rewrite
