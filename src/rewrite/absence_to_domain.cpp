// Absence in a body becomes a tighter domain; what is no union of a few bounds stays a predicate.
#include "tang/ir/surface.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
bool has_site(const Graph& g) {
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp(); c && !c->guards.empty())
      for (Id l : c->lift)
        if (!expr::subterms(g.pool, l, Op::only).empty()) return true;
  return false;
}

Result<Rewritten> apply_absence_to_domain(const Graph& g) {
  if (!has_site(g)) return Refusal{"no body has a guard"};
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!tighten(e.to, n)) return {};
    return g.label({id, 0});
  });
  if (c.what.empty()) return Refusal{"no absence in a body is a bound"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph absence_to_domain_witness() {
  // A builder moves bounds by itself, so the witness undoes it: the domain stands in the body.
  ir::Builder b;
  auto x = b.input("x", {5, 5});
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, sum(j, masked(j <= i, x(i, j)))), "y");
  const Graph built = b.graph();
  return change_each(built,
                     [](Edit& e, NodeId, Comp& n) -> std::optional<std::string> {
                       if (n.domain == ir::everywhere()) return {};
                       n.guards.push_back(n.domain);
                       n.lift[0] = e.to.pool.make(
                           Op::only, {e.to.pool.leaf(Op::holds, Type::boolean, int64_t(n.guards.size()) - 1),
                                      n.lift[0]});
                       n.domain = ir::everywhere();
                       return "";
                     })
      .graph;
}
} // namespace

Rule absence_to_domain() {
  return {"absence_to_domain",
          {"a term absent where a bound fails is no term there: the bound joins the domain",
           "absence_to_domain", Law::exact},
          apply_absence_to_domain,
          absence_to_domain_witness};
}

} // namespace tang::rewrite
