// A read guard becomes absence where the padded term is the identity: masks and paddings turn into loop
// bounds.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
struct Guarded {
  std::map<Id, Id> pad, bare; // or_else(only(when, x), q) -> q, and -> x
};

std::map<Id, Guarded> guards_of(const Pool& p, const Comp& n) {
  std::map<Id, Guarded> out;
  for (Id l : n.lift)
    for (Id x : expr::subterms(p, l, Op::or_else)) {
      const expr::Term& inner = p[p[x].args[0]];
      if (inner.op != Op::only) continue;
      Guarded& g = out[inner.args[0]];
      g.pad[x] = p[x].args[1];
      g.bare[x] = inner.args[1];
    }
  return out;
}

// combine(identity, lift with the pads) is the identity, for every component.
bool pads_to_identity(Pool& p, const Comp& n, const Guarded& guard) {
  std::map<Id, Id> unit;
  for (size_t c = 0; c < n.lift.size(); ++c) {
    const ir::Value& id = n.monoid->identity[c];
    unit[p.leaf(Op::var, id.type, int64_t(2 * c))] = p.literal(id);
    unit[p.leaf(Op::var, id.type, int64_t(2 * c + 1))] =
        expr::substitute(p, expr::present(p, n.lift[c]).value, guard.pad);
  }
  for (size_t c = 0; c < n.lift.size(); ++c)
    if (expr::simplify(p, expr::substitute(p, n.monoid->combine[c], unit)) !=
        p.literal(n.monoid->identity[c]))
      return false;
  return true;
}

bool change(Graph& g, Comp& n) {
  if (!n.monoid || !axes_fit(n)) return false;
  Pool& p = g.pool;
  bool fired = false;
  for (bool again = true; again;) {
    again = false;
    const auto all = guards_of(p, n);
    std::vector<Id> order;
    for (auto& [when, guard] : all) order.push_back(when);
    std::sort(order.begin(), order.end(), [&](Id a, Id b) { return p.before(a, b); });
    Dependence depends(p, n);
    for (Id when : order) {
      if (depends.of(when) & point_axes(n) & ~common_axes(n)) continue; // absence is of the whole term
      Guarded guard = all.at(when);
      // present() may rewrite the reads it passes, so pads are looked up in the values it gives.
      for (Id& l : n.lift) {
        const expr::Present x = expr::present(p, l);
        l = x.when == expr::yes(p) ? x.value : p.make(Op::only, {x.when, x.value});
      }
      const auto now = guards_of(p, n);
      if (auto it = now.find(when); it != now.end()) guard = it->second;
      if (!pads_to_identity(p, n, guard)) continue;
      for (Id& l : n.lift) l = p.make(Op::only, {when, expr::substitute(p, l, guard.bare)});
      fired = again = true;
      break;
    }
  }
  if (fired) tighten(g, n);
  return fired;
}

Result<Rewritten> apply_guard_to_absence(const Graph& g) {
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size() && !any; ++id)
    if (auto* c = g[id].comp(); c && c->monoid)
      for (Id l : c->lift) any = any || !expr::subterms(g.pool, l, Op::or_else).empty();
  if (!any) return Refusal{"no fold has a read guard"};
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!change(e.to, n)) return {};
    return g.label({id, 0});
  });
  if (c.what.empty()) return Refusal{"no term is the identity at its pads"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph guard_to_absence_witness() {
  ir::Builder b;
  auto x = b.input("x", {5}), w = b.input("w", {3});
  auto i = ir::axis("i", ir::Extent(5)), r = ir::axis("r", ir::Extent(3));
  b.output(ir::map({i}, sum(r, x.at_or(0.0, {ir::Index(i) + r - 1}) * w(r))), "y");
  return b.graph();
}
} // namespace

Rule guard_to_absence() {
  return {"guard_to_absence",
          {"combine(identity, term at the pads) = identity for every component: outside the guard there is "
           "no term",
           "guard_to_absence", Law::exact},
          apply_guard_to_absence,
          guard_to_absence_witness};
}

} // namespace tang::rewrite
