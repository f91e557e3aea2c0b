// Strip mining: a recurrence of n C steps is one of n steps, each of them a recurrence of C. What remembers
// every old state of the outer one remembers n of them. Steps that fill no segment follow as a recurrence of
// their own.
#include <functional>

#include "tang/ir/recurrence.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"

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

// The view that takes dimension d at axis d.
std::vector<Form> every(size_t dims) {
  std::vector<Form> out;
  for (size_t d = 0; d < dims; ++d) out.push_back(ir::axis(int(d)));
  return out;
}

std::vector<Form> local(size_t dims) { // of a tensor that is the same at every time
  std::vector<Form> out;
  for (size_t d = 0; d < dims; ++d) out.push_back(ir::axis(int(d) + 1));
  return out;
}

std::vector<Extent> with_front(Extent e, std::vector<Extent> shape) {
  shape.insert(shape.begin(), std::move(e));
  return shape;
}

// The step of `r` whose time, where anything reads it, is what `make` says of the step's own.
struct Stepped {
  Graph step;
  std::map<Port, Port> ports;
  NodeId time = 0;
};

Stepped with_time(const Recur& r, const std::function<Id(Graph&, Comp&, Id)>& make) {
  const Graph& step = *r.step;
  Stepped out;
  bool reads_time = false;
  for (NodeId id = 0; id < step.nodes.size(); ++id)
    for (Port p : ir::sources(step, id)) reads_time |= p.node == r.time;
  for (auto& s : r.states) reads_time |= s.out.node == r.time;
  for (auto& e : r.emits) reads_time |= e.out.node == r.time;
  ir::Copier copier(step);
  for (NodeId id = 0; id < step.nodes.size(); ++id) {
    const NodeId now = copier.copy(id);
    if (id != r.time) continue;
    out.time = now;
    if (!reads_time) continue;
    Comp time;
    const Id i = read_leaf(copier.to.pool, Type::index, add_read(time, {{now, 0}, {}}));
    time.lift = {make(copier.to, time, i)};
    time.outs = {{}};
    copier.set({id, 0}, {copier.to.add({std::move(time), "time", {}}), 0});
  }
  for (NodeId id = 0; id < step.nodes.size(); ++id)
    for (uint32_t k = 0; k < step.ports(id); ++k) out.ports[{id, k}] = copier.at({id, k});
  for (auto& o : step.outputs) copier.to.outputs.push_back({out.ports.at(o.port), o.name, o.format});
  out.step = std::move(copier.to);
  return out;
}

// The dimension of an emitted array that is the time, or -1.
int time_of(const Recur::Emit& e) {
  int at = -1;
  for (size_t d = 0; d < e.view.size(); ++d)
    if (e.view[d].axis(0) != 0) at = at < 0 && e.view[d].is_pick() ? int(d) : int(e.view.size());
  return at < int(e.view.size()) ? at : -1;
}

// Steps [from, from + count) of a recurrence, its time counted from 0. An array that it emits one row a step
// to holds these steps' rows alone.
Recur part(const Recur& r, int64_t from, int64_t count) {
  Recur out = r;
  out.steps = Extent(count);
  Stepped x = with_time(r, [&](Graph& g, Comp&, Id now) {
    return from ? g.pool.make(Op::add, {g.pool.literal(expr::whole(from)), now}) : now;
  });
  const auto later = [&](std::vector<Form>& view) {
    for (auto& f : view)
      f = ir::compose(f, [&](int a) { return a == 0 ? ir::axis(0) + ir::constant(from) : ir::axis(a); });
  };
  out.time = x.time;
  for (auto& s : out.states) s.in = x.ports.at({s.in, 0}).node, s.out = x.ports.at(s.out);
  for (auto& a : out.args) a.in = x.ports.at({a.in, 0}).node, later(a.view);
  for (auto& e : out.emits) {
    const int d = time_of(e);
    if (d >= 0) e.shape[size_t(d)] = Extent(count);
    else later(e.view);
    e.out = x.ports.at(e.out);
  }
  out.step = std::make_shared<const Graph>(std::move(x.step));
  return out;
}

// What two parts of a recurrence emitted to one array: the rows of the first are those before `from`, or each
// has the elements that exist.
Comp joined(Pool& p, const Recur::Emit& e, Type type, Port first, Port second, int64_t from) {
  Comp out;
  out.points = e.shape;
  out.outs = {{}};
  std::vector<Form> here = every(e.shape.size()), after = here;
  for (size_t d = 0; d < e.shape.size(); ++d) out.outs[0].axes.push_back(int(d));
  const int d = time_of(e);
  if (d >= 0) after[size_t(d)] = ir::axis(d) - ir::constant(from);
  const Id x = read_leaf(p, type, add_read(out, {first, here})),
           y = read_leaf(p, type, add_read(out, {second, after}));
  if (d < 0) {
    out.lift = {p.make(Op::or_else, {x, y})};
    return out;
  }
  const Id before = add_guard(p, out, {{ir::constant(from - 1) - ir::axis(d)}});
  out.lift = {p.make(Op::select, {before, x, y})};
  return out;
}

class Miner {
public:
  Miner(const Graph& g, const Recur& r, int64_t block) : g_(g), r_(r), block_(block) {}

  Recur run() {
    Recur out;
    out.steps = Extent(r_.steps.value() / block_);
    out.reverse = r_.reverse;
    outer_.symbols = g_.symbols;
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
    inner_.args.push_back({{now, 0}, moves ? every(dims + 1) : local(dims), at({a.in, 0}).node});
  }

  const Graph& g_;
  const Recur& r_;
  const int64_t block_;
  Graph outer_, inner_step_;
  Recur inner_;
  std::map<Port, Port> ports_;    // of the step, now
  std::optional<NodeId> segment_; // the inner step's input
};
} // namespace

namespace {
// Whole segments, and the steps after them: those of the highest times, or of the lowest in reverse.
void mine_with_rest(Edit& e, NodeId id, const Node& n, int64_t block) {
  const Recur& r = *n.recur();
  const int64_t steps = r.steps.value(), whole = steps / block * block, rest = steps - whole;
  const Recur main = part(r, r.reverse ? rest : 0, whole);
  const NodeId first = e.to.add({Miner(e.to, main, block).run(), n.name, n.where});
  Recur tail = part(r, r.reverse ? 0 : whole, rest);
  for (uint32_t k = 0; k < tail.states.size(); ++k) tail.states[k].init = Port{first, k};
  const NodeId last = e.to.add({std::move(tail), n.name, n.where});
  for (uint32_t k = 0; k < r.states.size(); ++k) e.set({id, k}, {last, k});
  for (uint32_t k = 0; k < r.emits.size(); ++k) {
    const Port x{first, uint32_t(r.states.size()) + k}, y{last, x.port};
    const Comp all = joined(e.to.pool, r.emits[k], e.to.type(x), r.reverse ? y : x, r.reverse ? x : y,
                            r.reverse ? rest : whole);
    e.set({id, x.port}, {e.to.add({all, n.name, n.where}), 0});
  }
}
} // namespace

Result<Rewritten> strip_mine(const Graph& g, NodeId id, int64_t block) {
  const Recur* r = id < g.nodes.size() ? g[id].recur() : nullptr;
  if (!r) return Refusal{"only a recurrence has segments"};
  const std::string name = g.label({id, 0});
  if (!r->steps.is_constant()) return Refusal{name + " has the symbolic number of steps " + r->steps.text()};
  if (block < 1 || r->steps.value() < block)
    return Refusal{name + " has " + std::to_string(r->steps.value()) + " steps, no segment of " +
                   std::to_string(block)};
  if (r->live != ir::everywhere()) return Refusal{name + " skips steps"};
  Edit e(g);
  for (NodeId k = 0; k < g.nodes.size(); ++k) {
    if (!e.live[k]) continue;
    Node n = e.node(k);
    if (k != id) e.put(k, std::move(n));
    else if (r->steps.value() % block) mine_with_rest(e, k, n, block);
    else n.what = Miner(e.to, *n.recur(), block).run(), e.put(k, std::move(n));
  }
  return Rewritten{e.finish(), {name + " in segments of " + std::to_string(block)}};
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
