// Bytes that a plan moves as scheduled: each step's inputs and outputs once.
#include <algorithm>
#include <map>

#include "tang/base/number.hpp"
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
      if (out && out->masked && out->overwrites == a.from.node) continue;  // what is kept is not read
      int64_t& n = elements[a.from];
      n = std::min(add_saturated(n, touched(*p.graph, c, a)), volume(p.graph->shape(a.from)));
    }
  }
  // A masked store writes the points that equalities leave free.
  int64_t written(const Buffer& b) const {
    int64_t n = 1;
    for (int64_t e : b.shape) n = mul_saturated(n, e);
    if (!b.masked || p.graph->pool[b.when].op != ir::Op::holds) return n;
    const ir::Comp& c = *(*p.graph)[b.of.node].comp();
    const ir::Domain& d = c.guards[size_t(p.graph->pool[b.when].whole)];
    if (d.size() != 1) return n;
    for (auto& f : d[0]) {
      const bool equality = std::find(d[0].begin(), d[0].end(), -1 * f) != d[0].end();
      if (!equality || f.axes.size() != 1 || f.axes[0].second != 1) continue;
      n /= std::max<int64_t>(1, c.extent(f.axes[0].first).value());
    }
    return n;
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
}  // namespace

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

}  // namespace tang::plan
