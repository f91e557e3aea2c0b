// Hoist: factors and divisors of a sum that do not change along its fold axes come out.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
struct Out { // what comes out of one component
  std::vector<Id> factors, divisors;
  Id lift; // what stays
};

struct Finder {
  Graph& g;
  const Comp& n;
  Pool& p = g.pool;
  Dependence depends{p, n};
  const Axes folds = fold_axes(n);

  bool is_invariant(Id x) { return has_reads(p, x) && !(depends.of(x) & folds); }

  // Outside the fold the read must exist at every point, live or not.
  bool is_safe(Id x) {
    for (Id y : expr::schedule(p, {x})) {
      const expr::Term t = p[y];
      if (t.op == Op::arg && !is_total(g, n, int(t.whole))) return false;
      if (t.op == Op::holds) return false;
      if (t.op == Op::only || t.op == Op::or_else) return false;
    }
    return true;
  }

  // Is the read `l` the sum of positive terms over exactly this node's live terms, so that it is 0 only where
  // there is none? With `term` it must be the sum of that very term.
  bool sums_same_terms(Id l, const Product& f) {
    if (p[l].op != Op::arg) return false;
    const Arg a = n.args[size_t(p[l].whole)];
    const Comp* at = g[a.from.node].comp();
    if (!at || !is_plain_fold(p, *at, Op::add) || at->folds != n.folds || !at->outs[0].view.empty() ||
        !axes_fit(*at))
      return false;
    const Comp sum = *at;
    Comp trial = n;
    const auto picked = picked_axes(sum, a);
    Import in(p, sum, trial, [&](int x) {
      return size_t(x) < sum.points.size() ? picked.at(x)
                                           : ir::axis(x - int(sum.points.size()) + int(n.points.size()));
    });
    const expr::Present e = expr::present(p, in.body(sum.lift[0])), own = expr::present(p, trial.lift[0]);
    if (!in.why().empty() || in.domain(sum.domain) != n.domain || ordered(p, e.when) != ordered(p, own.when))
      return false;
    if (!expr::positive(p, e.value)) return false;
    const Id want = ordered(p, e.value);
    return std::any_of(f.factors.begin(), f.factors.end(), [&](Id x) { return ordered(p, x) == want; });
  }

  std::optional<Out> component(size_t c) {
    if (!is_plain_component(p, n, c, Op::add) || n.monoid->identity[c].type != Type::real) return {};
    const expr::Present x = expr::present(p, n.lift[c]);
    const Product f = product_of(p, x.value);
    const bool live = never_empty(n, g.symbols) && x.when == expr::yes(p);
    Out out;
    Product rest;
    const bool single = n.lift.size() == 1;
    for (Id y : f.factors) {
      const expr::Term t = p[y];
      if (!is_invariant(y) || !is_safe(y)) {
        rest.factors.push_back(y);
      } else if (t.op == Op::recip && single && sums_same_terms(t.args[0], f)) {
        out.divisors.push_back(t.args[0]); // as `ratio`: an empty row stays 0
      } else if (live) {
        out.factors.push_back(y);
      } else {
        rest.factors.push_back(y);
      }
    }
    for (Id y : f.divisors) {
      // ratio is 0 where the divisor is: nothing can become 0 / 0. It must be a number where nothing was
      // folded.
      if (is_invariant(y) && is_safe(y) && (live || (single && sums_same_terms(y, f))))
        out.divisors.push_back(y);
      else
        rest.divisors.push_back(y);
    }
    if (out.factors.empty() && out.divisors.empty()) return {};
    const Id lift = term_of(p, rest);
    out.lift = x.when == expr::yes(p) ? lift : p.make(Op::only, {x.when, lift});
    return out;
  }
};

bool has_site(const Graph& g, const Comp& n) {
  if (!n.monoid || n.folds.empty() || !axes_fit(n)) return false;
  Dependence depends(g.pool, n);
  const Axes folds = fold_axes(n);
  for (size_t a = 0; a < n.args.size(); ++a)
    if (!(depends.of_arg(int(a)) & folds)) return true;
  return false;
}

Result<Rewritten> apply_hoist(const Graph& g) {
  const auto live = alive(g);
  std::vector<char> site(g.nodes.size(), 0);
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp(); live[id] && c && has_site(g, *c)) any = (site[id] = 1);
  if (!any) return Refusal{"no sum reads what its fold axes leave alone"};
  Edit e(g);
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    if (!site[id]) {
      e.put(id, std::move(node));
      continue;
    }
    Comp n = std::get<Comp>(node.what);
    std::vector<std::optional<Out>> outs;
    Finder find{e.to, n};
    bool fired = false;
    for (size_t c = 0; c < n.lift.size(); ++c) {
      outs.push_back(find.component(c));
      fired |= bool(outs.back());
    }
    if (!fired) {
      e.put(id, std::move(node));
      continue;
    }
    Comp sum = n;
    for (size_t c = 0; c < outs.size(); ++c)
      if (outs[c]) {
        sum.lift[c] = outs[c]->lift;
        sum.outs[c].view.clear(), sum.outs[c].shape.clear(); // the map has the view
      }
    const NodeId now = e.to.add({sum, node.name, node.where});
    for (uint32_t c = 0; c < outs.size(); ++c) {
      e.set({id, c}, {now, c});
      if (!outs[c]) continue;
      Pool& p = e.to.pool;
      Comp map;
      std::map<int, int> place;
      for (int a : n.outs[c].axes) {
        place[a] = int(map.points.size());
        map.points.push_back(n.points[size_t(a)]);
      }
      Arg self{{now, c}, {}};
      ir::Out out;
      for (size_t a = 0; a < map.points.size(); ++a) {
        self.view.push_back(ir::axis(int(a)));
        out.axes.push_back(int(a));
      }
      for (auto& f : n.outs[c].view) {
        Form moved = ir::constant(f.c);
        for (auto& [a, k] : f.axes) moved = moved + k * ir::axis(place.at(a));
        out.view.push_back(moved);
      }
      out.shape = n.outs[c].shape;
      Id body = read_leaf(p, Type::real, add_read(map, self));
      Import in(p, n, map, [&](int a) { return ir::axis(place.at(a)); });
      for (Id d : outs[c]->divisors) body = p.make(Op::ratio, {body, in.body(d)});
      for (Id f : outs[c]->factors) body = p.make(Op::mul, {in.body(f), body});
      map.lift = {body};
      map.outs = {out};
      check(in.why().empty(), "a hoisted factor had no form");
      e.set({id, c}, {e.to.add({std::move(map), node.name, node.where}), 0});
    }
    what.push_back(g.label({id, 0}));
  }
  if (what.empty()) return Refusal{"no factor may leave a sum that can be empty"};
  return Rewritten{e.finish(), what};
}

Graph hoist_witness() {
  ir::Builder b;
  auto s = b.input("s", {5, 4}), v = b.input("v", {4, 3});
  auto [i, j, c] = ir::axes<"i j c">();
  auto weight = masked(j <= ir::Index(i) - ir::Index(1), exp(s(i, j)));
  b.output(ir::map({i, c}, sum(j, weight / sum(j, weight) * v(j, c))), "out");
  b.output(ir::map({i}, sum(j, s(i, j) * s(i, ir::Index(0)))), "scaled");
  return b.graph();
}
} // namespace

Rule hoist() {
  return {"hoist",
          {"sum e_j / l v_j = ratio(sum e_j v_j, l) where l = sum e_j of the same positive terms; sum f g_j "
           "= f sum g_j where the sum is not empty",
           "hoist_ratio", Law::algebraic},
          apply_hoist,
          hoist_witness};
}

} // namespace tang::rewrite
