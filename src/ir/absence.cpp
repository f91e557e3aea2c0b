#include "tang/ir/absence.hpp"

#include <algorithm>
#include <set>

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
} // namespace

bool may_be_absent(Graph& g, Port from, bool by_domain) {
  std::set<NodeId> seen;
  return absent(g, from, by_domain, seen);
}

} // namespace tang::ir
