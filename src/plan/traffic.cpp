// Bytes that a plan moves as scheduled: each step's inputs and outputs once.
#include <algorithm>
#include <map>

#include "tang/base/number.hpp"
#include "tang/expr/absence.hpp"
#include "tang/plan/facts.hpp"

namespace tang::plan {

namespace {
struct Traffic {
  const Plan& p;
  const Group& g;
  std::map<Port, int64_t> elements = {};
  std::set<NodeId> inside = {};

  ir::Format format(Port q) const {
    if (auto* in = (*p.graph)[q.node].input()) return in->format;
    const Buffer* b = p.buffer(q);
    check(b, "a step reads what is not stored: " + p.graph->label(q));
    return b->format;
  }

  int64_t bytes(Port q, int64_t n) const { return ceil_div(mul_saturated(n, ir::row(format(q)).bits), 8); }

  void read(NodeId id) {
    const ir::Comp& c = *(*p.graph)[id].comp();
    const Buffer* out = p.buffer({id, 0});
    for (auto& a : c.args) {
      if (inside.count(a.from.node)) continue;
      if (out && out->masked && out->overwrites == a.from.node && !used(c, a.from.node))
        continue; // what is kept stays
      int64_t& n = elements[a.from];
      n = std::min(add_saturated(n, touched(*p.graph, c, a)), volume(p.graph->shape(a.from)));
    }
  }

  // Does the new value of a masked store, or its condition, read x?
  bool used(const ir::Comp& c, NodeId x) const {
    const ir::Pool& pool = p.graph->pool;
    const expr::Term& top = pool[c.lift[0]];
    std::set<ir::Id> reads;
    for (int k = 0; k + 1 < top.arity(); ++k) expr::subterms(pool, top.args[size_t(k)], ir::Op::arg, reads);
    return std::any_of(reads.begin(), reads.end(),
                       [&](ir::Id t) { return c.args[size_t(pool[t].whole)].from.node == x; });
  }

  // Axes that a condition pins to one value: by an equality of bounds, or of a coordinate with a value free
  // of it.
  std::set<int> pinned(const ir::Comp& c, ir::Id when) const {
    const ir::Pool& pool = p.graph->pool;
    std::set<int> out;
    for (ir::Id t : expr::conjuncts(pool, when)) {
      const expr::Term& x = pool[t];
      if (x.op == ir::Op::holds && c.guards[size_t(x.whole)].size() == 1) {
        const ir::Conj& bounds = c.guards[size_t(x.whole)][0];
        for (auto& f : bounds)
          if (f.axes.size() == 1 && std::find(bounds.begin(), bounds.end(), -1 * f) != bounds.end())
            out.insert(f.axes[0].first);
      }
      if (x.op != ir::Op::equal) continue;
      for (size_t side : {0, 1}) {
        const expr::Term& l = pool[x.args[side]];
        if (l.op != ir::Op::coord) continue;
        std::set<int> moves;
        for (ir::Id r : expr::subterms(pool, x.args[1 - side], ir::Op::coord))
          moves.insert(int(pool[r].whole));
        for (ir::Id r : expr::subterms(pool, x.args[1 - side], ir::Op::arg))
          for (auto& f : c.args[size_t(pool[r].whole)].view) moving(c, f, moves);
        if (!moves.count(int(l.whole))) out.insert(int(l.whole));
      }
    }
    return out;
  }

  int64_t written(const Buffer& b) const {
    const ir::Node& n = (*p.graph)[b.of.node];
    std::set<int> one;
    if (b.masked) one = pinned(*n.comp(), b.when);
    int64_t count = 1;
    for (size_t d = 0; d < b.shape.size(); ++d)
      if (!one.count(int(d)) || b.shape[d] == 0) count = mul_saturated(count, b.shape[d]);
    return count;
  }

  int64_t total() {
    for (auto& x : g.shared) inside.insert(x.node);
    for (auto& m : g.members) inside.insert(m.node);
    for (auto& e : g.epilogues) inside.insert(e.node);
    for (NodeId id : inside) read(id);
    int64_t sum = 0;
    for (auto& [q, n] : elements) sum = add_saturated(sum, bytes(q, n));
    for (auto& b : p.buffers)
      if (inside.count(b.of.node)) sum = add_saturated(sum, bytes(b.of, written(b)));
    return sum;
  }
};
} // namespace

// A Recur moves what its body moves, at every step.
int64_t Plan::bytes_of(const Step& s) const {
  if (!s.recur) return Traffic{*this, s.group}.total();
  return mul_saturated((*graph)[*s.recur].recur()->steps.value(), s.body->bytes_moved());
}

int64_t Plan::bytes_moved() const {
  int64_t sum = 0;
  for (auto& s : steps) sum = add_saturated(sum, bytes_of(s));
  return sum;
}

} // namespace tang::plan
