#include "tang/ir/absence.hpp"

#include <algorithm>

#include "tang/expr/absence.hpp"

namespace tang::ir {

namespace {
bool absent(Graph& g, Port from, bool by_domain, std::set<NodeId>& seen) {
  if (auto* r = g[from.node].recur()) return from.port >= r->states.size();
  const Comp* c = g[from.node].comp();
  if (!c || !seen.insert(from.node).second) return false;
  if (!c->outs[from.port].view.empty()) return true;
  if (!c->is_map()) return false;
  if (by_domain && c->domain != everywhere()) return true;
  const Id lift = c->lift[from.port];
  if (expr::present(g.pool, lift).when != expr::yes(g.pool)) return true;
  const auto reads = expr::subterms(g.pool, lift, expr::Op::arg);
  return std::any_of(reads.begin(), reads.end(), [&](Id x) {
    return absent(g, g[from.node].comp()->args[size_t(g.pool[x].whole)].from, true, seen);
  });
}

void points_of(const Comp& n, const Form& f, std::set<int>& out) {
  for (auto& t : f.axes)
    if (size_t(t.first) < n.points.size()) out.insert(t.first);
  for (auto& t : f.args)
    for (auto& v : n.args[size_t(t.first)].view) points_of(n, v, out);
}

void points_of(const Comp& n, const Domain& d, std::set<int>& out) {
  for (auto& piece : d)
    for (auto& f : piece) points_of(n, f, out);
}
} // namespace

std::set<int> points_of_domain(const Comp& n) {
  std::set<int> out;
  points_of(n, n.domain, out);
  return out;
}

std::set<int> points_of_term(const Pool& p, const Comp& n, size_t component) {
  std::set<int> out;
  for (Id x : expr::schedule(p, {n.lift[component]})) {
    const expr::Term& t = p[x];
    if (t.op == expr::Op::coord) points_of(n, axis(int(t.whole)), out);
    if (t.op == expr::Op::holds) points_of(n, n.guards[size_t(t.whole)], out);
    if (t.op == expr::Op::arg)
      for (auto& v : n.args[size_t(t.whole)].view) points_of(n, v, out);
  }
  return out;
}

bool may_be_absent(Graph& g, Port from, bool by_domain) {
  std::set<NodeId> seen;
  return absent(g, from, by_domain, seen);
}

} // namespace tang::ir
