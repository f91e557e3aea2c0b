// Drop guard: or_else(only(g, F), q) is F where every read of F misses whenever g fails, and F of those pads
// is q.
#include "tang/ir/surface.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
std::optional<Id> dropped(Pool& p, const Comp& n, Id root) {
  for (Id x : expr::subterms(p, root, Op::or_else)) {
    const expr::Term outer = p[p[x].args[0]];
    if (outer.op != Op::only || p[outer.args[0]].op != Op::holds || p[outer.args[1]].op == Op::arg) continue;
    const Domain& wide = n.guards[size_t(p[outer.args[0]].whole)];
    std::map<Id, Id> pads;
    std::set<Id> covered;
    for (Id r : expr::subterms(p, outer.args[1], Op::or_else)) {
      const expr::Term inner = p[p[r].args[0]];
      if (inner.op != Op::only || p[inner.args[0]].op != Op::holds) continue;
      if (!ir::implies(n.guards[size_t(p[inner.args[0]].whole)], wide))
        continue; // it hits only where the outer holds
      pads[r] = p[r].args[1];
      covered.insert(inner.args[1]);
    }
    bool all = !covered.empty() && expr::subterms(p, outer.args[1], Op::coord).empty();
    for (Id r : expr::subterms(p, outer.args[1], Op::arg)) all = all && covered.count(r);
    if (!all) continue;
    if (expr::simplify(p, expr::substitute(p, outer.args[1], pads)) != expr::simplify(p, p[x].args[1]))
      continue;
    return expr::substitute(p, root, {{x, outer.args[1]}});
  }
  return {};
}

Result<Rewritten> apply_drop_guard(const Graph& g) {
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size() && !any; ++id)
    if (auto* c = g[id].comp(); c && !c->guards.empty())
      for (Id l : c->lift) any = any || expr::subterms(g.pool, l, Op::or_else).size() > 1;
  if (!any) return Refusal{"no guarded map was spliced"};
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    bool fired = false;
    for (Id& l : n.lift)
      while (auto next = dropped(e.to.pool, n, l)) {
        l = *next;
        fired = true;
      }
    if (!fired) return {};
    return g.label({id, 0});
  });
  if (c.what.empty())
    return Refusal{
        "an inner read may hit where the outer guard fails, or the body of its pads is not the pad"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph drop_guard_witness() {
  ir::Builder b;
  auto x = b.input("x", {4});
  auto j = ir::axis("j", ir::Extent(5));
  const ir::Guard in = j >= 1 && j <= 4;
  b.output(ir::map({j}, where(in, relu(x.at_or(0.0, {ir::Index(j) - 1})), 0.0)), "y");
  return b.graph();
}
} // namespace

Rule drop_guard() {
  return {"drop_guard",
          {"an outer guard may go where every inner read misses whenever it fails and the body of the pads "
           "is the outer pad",
           "fusion_drop_guard", Law::exact},
          apply_drop_guard,
          drop_guard_witness};
}

} // namespace tang::rewrite
