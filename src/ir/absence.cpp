#include "tang/ir/absence.hpp"

#include <algorithm>

#include "tang/expr/absence.hpp"

namespace tang::ir {

namespace {
// The reads of a body whose absence no or_else catches.
std::set<Id> uncaught(const Pool& p, Id id) {
  std::set<Id> seen, reads;
  std::vector<Id> todo{id};
  while (!todo.empty()) {
    const Id x = todo.back();
    todo.pop_back();
    if (!seen.insert(x).second) continue;
    const expr::Term& t = p[x];
    if (t.op == expr::Op::arg) reads.insert(x);
    for (int k = t.op == expr::Op::or_else; k < t.arity(); ++k) todo.push_back(t.args[size_t(k)]);
  }
  return reads;
}

bool absent(Graph& g, Port from, unsigned counted, bool is_read, std::set<Port>& seen) {
  if (auto* r = g[from.node].recur()) return from.port >= r->states.size();
  const Comp* c = g[from.node].comp();
  if (!c || !seen.insert(from).second) return false;
  if (!c->outs[from.port].view.empty()) return true;
  if (!c->is_map()) return false;
  if (is_read && (counted & by_domains_read) && c->domain != everywhere()) return true;
  const Id lift = c->lift[from.port];
  if ((counted & by_predicates) && expr::present(g.pool, lift).when != expr::yes(g.pool)) return true;
  const std::set<Id> reads = uncaught(g.pool, lift);
  return std::any_of(reads.begin(), reads.end(), [&](Id x) {
    return absent(g, c->args[size_t(g.pool[x].whole)].from, counted, true, seen);
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

bool may_be_absent(Graph& g, Port from, unsigned counted) {
  std::set<Port> seen;
  return absent(g, from, counted, false, seen);
}

} // namespace tang::ir
