// Chunk: a recurrence whose step is affine in its state runs in chunks of C steps. Inside a chunk nothing
// waits for the state that it starts from: S_i = D(i, start) S_start + sum_(j <= i) D(i, j) c_j, where D(i,
// j) is the product of the factors after j up to i. Between chunks a recurrence of n steps carries the
// states. Decays are products, never ratios of products or of exponentials of sums: what underflows is 0.
#include <algorithm>

#include "tang/ir/recurrence.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/always_there.hpp"
#include "tang/rewrite/chunk_state.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/terms.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

using ir::Extent;
using ir::Recur;

namespace {
class Chunker {
public:
  // `there`: of each argument, whether all of its source exists.
  Chunker(Graph& to, const Recur& r, int64_t block, const Node& like, const std::vector<char>& there)
      : to_(to), r_(r), like_(like), there_(there), step_(*r.step),
        over_(to, step_, r, block), chunks_{over_, r, block, r.steps.value() / block, like} {
    over_.other = [this](Port p) { return sum_of_parts(p); };
  }

  Result<std::vector<Port>> run() {
    if (const std::string why = unfit(); !why.empty()) return Refusal{why};
    std::vector<Port> out(r_.states.size());
    for (size_t left = r_.states.size(); left;) {
      std::string why;
      const std::optional<size_t> k = next_to_solve(why);
      if (!k) return Refusal{why};
      out[*k] = solve(*k);
      --left;
    }
    for (auto& e : r_.emits) out.push_back(emitted(e));
    return out;
  }

private:
  Port old(size_t k) const { return {r_.states[k].in, 0}; }

  std::string unfit() const {
    for (auto& s : r_.states) {
      const ir::Input& in = *step_[s.in].input();
      if (ir::type_of(in.format) != Type::real) return step_.label({s.in, 0}) + " is no real state";
      if (in.format != ir::default_format(Type::real) && in.format != ir::Format::f64)
        return step_.label({s.in, 0}) + " is rounded at every step";
    }
    for (NodeId id = 0; id < step_.nodes.size(); ++id)
      if (step_[id].recur()) return "its step has a recurrence of its own";
    return "";
  }

  // A state that no unsolved one moves, solved symbolically; or why there is none.
  std::optional<size_t> next_to_solve(std::string& why) {
    for (size_t k = 0; k < r_.states.size(); ++k) {
      if (known_.count(k)) continue;
      std::set<Port> others;
      for (size_t x = 0; x < r_.states.size(); ++x)
        if (x != k && !known_.count(x)) others.insert(old(x));
      if (depending(step_, others).count(r_.states[k].out)) {
        if (why.empty()) why = "other states move " + step_.label(old(k));
        continue;
      }
      auto a = affine_step(step_, r_, k);
      if (a && !(finds_all(a->next) && (!a->correction || finds_all(a->correction->sum))))
        a = Refusal{"the next " + step_.label(old(k)) + " reads what may be missing"};
      if (!a) {
        why = a.why();
        return {};
      }
      known_.emplace(k, ChunkState(chunks_, std::move(*a)));
      return k;
    }
    return {};
  }

  // Every read of the step's node finds something, whatever the time.
  bool finds_all(const Comp& n) {
    return std::all_of(n.args.begin(), n.args.end(), [&](const Arg& a) {
      if (!lies_inside(a.view, n.extents(), step_.shape(a.from), step_.symbols)) return false;
      for (size_t k = 0; k < r_.args.size(); ++k) {
        const Recur::Read& x = r_.args[k];
        if (!(a.from == Port{x.in, 0})) continue;
        const auto extents = with_front(r_.steps, step_.shape(a.from));
        return there_[k] && lies_inside(x.view, extents, to_.shape(x.from), to_.symbols);
      }
      return always_there(step_, a.from);
    });
  }

  Port solve(size_t k) {
    ChunkState& s = known_.at(k);
    const Port end = s.solve(r_.states[k].init);
    over_.set(old(k), s.whole(0));
    over_.set(r_.states[k].out, s.whole(1));
    if (s.fed_back) over_.set(s.a.correction->port, *s.fed_back);
    return end;
  }

  // Which state a port of the step is, before or after the step.
  struct Is {
    const ChunkState* state;
    int after;
  };

  std::map<Port, Is> states_known() const {
    std::map<Port, Is> out;
    for (auto& [k, s] : known_) {
      if (!s.sums) continue;
      out[r_.states[k].out] = {&s, 1};
      out[old(k)] = {&s, 0};
    }
    return out;
  }

  // A sum that is linear in states: of what they started from, of what the chunk added, and of the rest.
  std::optional<Port> sum_of_parts(Port port) {
    const Comp* c = step_[port.node].comp();
    if (!c || !is_plain_fold(step_.pool, *c, Op::add) || !c->outs[0].view.empty()) return {};
    const auto states = states_known();
    std::set<Port> leaves;
    for (auto& [p, is] : states) leaves.insert(p);
    if (leaves.count(port)) return {};
    const auto n = written_out(step_, *c, depending(step_, leaves), leaves);
    if (!n) return {};
    const std::set<int> reads = reads_of(step_.pool, *n, n->lift[0], leaves);
    const auto linear = linear_in(step_.pool, n->lift[0], reads);
    if (reads.empty() || !linear) return {};
    const std::string name = step_.label(port);
    std::vector<Port> parts;
    if (!is_zero(step_.pool, linear->rest)) parts.push_back(chunks_.sum(*n, linear->rest, {}, name));
    for (int a : reads)
      for (bool start : {true, false})
        parts.push_back(chunks_.sum(
            *n, linear->factor.at(a),
            [&](MapOf& m, OverTime::Moved& moved) {
              const Arg& read = n->args[size_t(a)];
              std::vector<Form> at;
              for (auto& f : read.view) at.push_back(moved.form(f));
              const Is is = states.at(read.from);
              return start ? is.state->carried(is.after, m, at) : is.state->made(is.after, m, at);
            },
            name));
    return chunks_.added(parts, name);
  }

  Port emitted(const Recur::Emit& e) {
    const Port from = over_.array(e.out);
    const auto local = step_.shape(e.out);
    MapOf m(to_, over_.shape(local));
    const Id value = m.at(from, over_.varies(e.out) ? every(local.size() + 2) : every(local.size(), 2));
    for (auto& f : e.view)
      m.n.outs[0].view.push_back(ir::compose(f, [&](int a) {
        return a ? ir::axis(a + 1) : over_.time({ir::axis(0), ir::axis(1)});
      }));
    m.n.outs[0].shape = e.shape;
    return m.add(value, like_.name);
  }

  Graph& to_;
  const Recur& r_;
  const Node& like_;
  const std::vector<char>& there_;
  Graph step_; // its pool grows
  OverTime over_;
  const Chunks chunks_;
  std::map<size_t, ChunkState> known_;
};
} // namespace

namespace {
// The recurrences that `wanted` names in chunks. One that cannot be leaves the reason in `why`.
Rewritten chunked(const Graph& g, const std::set<NodeId>& wanted, int64_t block, std::string& why) {
  Edit e(g);
  Graph before = g; // its pool may grow
  std::vector<std::string> what;
  for (NodeId k = 0; k < g.nodes.size(); ++k) {
    if (!e.live[k]) continue;
    Node n = e.node(k);
    if (!wanted.count(k)) {
      e.put(k, std::move(n));
      continue;
    }
    std::vector<char> there;
    for (auto& a : g[k].recur()->args) there.push_back(always_there(before, a.from));
    const auto chunks = [&](const Recur& r) { return Chunker(e.to, r, block, n, there).run(); };
    const auto ports = in_segments(e.to, *n.recur(), block, n, chunks);
    if (!ports) {
      why = g.label({k, 0}) + ": " + ports.why();
      e.put(k, std::move(n));
      continue;
    }
    for (uint32_t p = 0; p < ports->size(); ++p) e.set({k, p}, (*ports)[p]);
    what.push_back(g.label({k, 0}) + " in chunks of " + std::to_string(block));
  }
  return {e.finish(), std::move(what)};
}

std::string why_no_chunks(const Graph& g, NodeId id, int64_t block) {
  const std::string why = why_no_segments(g, id, block);
  if (!why.empty()) return why;
  return block < 2 || g[id].recur()->steps.value() < 2 * block ? g.label({id, 0}) + " is one chunk" : "";
}
} // namespace

Result<Rewritten> chunk(const Graph& g, NodeId id, int64_t block) {
  std::string why = why_no_chunks(g, id, block);
  if (!why.empty()) return Refusal{why};
  Rewritten out = chunked(g, {id}, block, why);
  if (out.what.empty()) return Refusal{why};
  return out;
}

Result<Rewritten> chunk_all(const Graph& g, int64_t block) {
  std::string why = "no recurrence";
  std::set<NodeId> wanted;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!g[id].recur()) continue;
    const std::string not_this = why_no_chunks(g, id, block);
    if (not_this.empty())
      wanted.insert(id);
    else
      why = not_this;
  }
  Rewritten out = chunked(g, wanted, block, why);
  if (out.what.empty()) return Refusal{why};
  return out;
}

namespace {
// Linear attention with a decay, and a running mean of its outputs: one sum in chunks, and one scan.
Graph chunk_witness() {
  ir::Builder b;
  auto q = b.input("q", {14, 4}), k = b.input("k", {14, 4}), v = b.input("v", {14, 3}),
       gate = b.input("gate", {14});
  auto rate = b.input("rate", {14, 3}), start = b.input("start", {4, 3});
  const ir::Axis t = ir::axis("t", Extent(14)), x = ir::axis("x", Extent(4)), c = ir::axis("c", Extent(3));
  const auto r =
      ir::recur(t, {ir::carried("S", start), ir::carried("mean", {Extent(3)})},
                [&](const std::vector<ir::Tensor>& old) -> ir::Step {
                  auto next = ir::map({x, c}, sigmoid(gate(t)) * old[0](x, c) + k(t, x) * v(t, c), "S");
                  auto out = ir::map({c}, sum(x, q(t, x) * next(x, c)), "out");
                  auto mean = ir::map({c}, rate(t, c) * old[1](c) + out(c), "mean");
                  return {{next, mean}, {out, ir::map({c}, tanh(old[1](c)))}};
                });
  b.output(r.states[0], "last");
  b.output(r.states[1], "last mean");
  b.output(r.emits[0], "out");
  b.output(r.emits[1], "means");
  return b.graph();
}
} // namespace

Rule chunk_rule() {
  auto apply = [](const Graph& g) -> Result<Rewritten> {
    std::string why;
    for (int64_t block : {4, 2}) {
      auto done = chunk_all(g, block);
      if (done) return done;
      why = done.why();
    }
    return Refusal{why};
  };
  return {"chunk",
          {"a recurrence S' = g S + c is, chunk by chunk, the product of the g times what the chunk starts "
           "from and the sum of each c times the product of the later g",
           "delta_unrolled", Law::algebraic},
          apply,
          chunk_witness,
          true};
}

} // namespace tang::rewrite
