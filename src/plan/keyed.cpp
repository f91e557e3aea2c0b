#include "tang/plan/keyed.hpp"

#include <algorithm>

#include "tang/plan/facts.hpp"

namespace tang::plan {

std::set<int> axes_of(const ir::Comp& n, const ir::Form& f) {
  std::set<int> out;
  moving(n, f, out);
  return out;
}

std::set<int> axes_of(const ir::Graph& g, const ir::Comp& n, ir::Id term) {
  std::set<int> out;
  for (ir::Id x : expr::schedule(g.pool, {term})) {
    const expr::Term& t = g.pool[x];
    if (t.op == ir::Op::coord) out.insert(int(t.whole));
    if (t.op == ir::Op::arg)
      for (auto& f : n.args[size_t(t.whole)].view) moving(n, f, out);
    if (t.op == ir::Op::holds)
      for (auto& piece : n.guards[size_t(t.whole)])
        for (auto& f : piece) moving(n, f, out);
  }
  return out;
}

std::optional<Key> key_of(const ir::Graph& g, const ir::Comp& n, int t) {
  if (!n.monoid || n.lift.size() != 1 || n.domain.size() != 1 || axes_of(g, n, n.lift[0]).count(t)) return {};
  const ir::Conj& all = n.domain[0];
  const ir::Form* equality = nullptr;
  Key key{t, {}, {{}}};
  for (auto& f : all) {
    if (!axes_of(n, f).count(t)) {
      ir::insert(key.domain[0], f);
      continue;
    }
    const bool both = std::find(all.begin(), all.end(), -1 * f) != all.end();
    const auto k = std::find_if(f.axes.begin(), f.axes.end(), [&](auto& a) { return a.first == t; });
    const bool one = !equality || -1 * f == *equality;
    if (!both || !one || k == f.axes.end() || std::abs(k->second) != 1) return {};
    if (k->second == -1) equality = &f;
  }
  if (!equality) return {};
  key.at = *equality + ir::axis(t);
  return key;
}

} // namespace tang::plan
