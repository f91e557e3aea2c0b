// One-term splice: reads that are 0 outside a common domain D bring D into a reader whose term is then the
// identity; folds of one term are spliced. Masked gradients are made of them.
#include <algorithm>

#include "tang/ir/absence.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
bool is_one_term(const Pool& p, const Comp& n) {
  return is_plain_fold(p, n, Op::add) && n.folds.empty() && n.outs[0].view.empty();
}

// A sum whose domain is on its points: 0 outside it.
bool zero_outside(const Pool& p, const Comp& n) {
  if (!is_plain_fold(p, n, Op::add) || !n.outs[0].view.empty() || n.domain == ir::everywhere() ||
      !axes_fit(n))
    return false;
  Dependence depends(p, n);
  for (auto& f : n.domain.size() == 1 ? n.domain[0] : ir::Conj{})
    if (!(depends.of(f) & fold_axes(n))) return true;
  return is_one_term(p, n);
}

Domain points_only(const Pool& p, const Comp& n) {
  if (is_one_term(p, n)) return n.domain;
  Dependence depends(p, n);
  Domain out{{}};
  for (auto& f : n.domain[0])
    if (!(depends.of(f) & fold_axes(n))) insert(out[0], f);
  return out;
}

// A sum of one term is 0 where that is absent. What the term says of it is seen to; its reads may hide more.
bool may_be_absent(Graph& g, const Comp& sum) {
  return std::any_of(sum.args.begin(), sum.args.end(),
                     [&](const Arg& a) { return ir::may_be_absent(g, a.from, ir::by_views); });
}

bool splice_folds(Graph& g, Comp& n) {
  Pool& p = g.pool;
  if (!axes_fit(n)) return false;
  const std::set<int> indices = index_reads(n);

  struct Read {
    int arg;
    Comp source;
    Domain domain; // over n
  };

  std::vector<Read> reads;
  bool one_term = false;
  for (int a = 0, count = int(n.args.size()); a < count; ++a) {
    const Comp* s = g[n.args[size_t(a)].from.node].comp();
    if (!s || indices.count(a)) continue;
    const bool total = is_one_term(p, *s) && s->domain == ir::everywhere();
    if (!total && !zero_outside(p, *s)) continue;
    Read r{a, *s, {}};
    const auto at = picked_axes(r.source, n.args[size_t(a)]);
    if (total) {
      r.domain = ir::everywhere();
    } else {
      Import in(p, r.source, n, [&](int x) { return at.at(x); });
      r.domain = ir::pruned(in.domain(points_only(p, r.source)), n.extents(), g.symbols);
    }
    one_term = one_term || is_one_term(p, r.source);
    reads.push_back(std::move(r));
  }
  if (!one_term) return false;
  bool fired = false;
  std::vector<Domain> domains;
  for (auto& r : reads)
    if (std::find(domains.begin(), domains.end(), r.domain) == domains.end()) domains.push_back(r.domain);
  for (const Domain& d : domains) {
    std::vector<Read*> z;
    for (auto& r : reads)
      if (r.domain == d) z.push_back(&r);
    if (std::none_of(z.begin(), z.end(), [&](Read* r) { return is_one_term(p, r->source); })) continue;
    const bool already = ir::implies(n.domain, d);
    // Spliced, such a read is absent where the sum is 0: the same where the term is then skipped.
    const bool hidden = std::any_of(z.begin(), z.end(), [&](Read* r) {
      return is_one_term(p, r->source) && may_be_absent(g, r->source);
    });
    if (hidden && !n.monoid) continue;
    if ((!already || hidden) && n.monoid) {
      Dependence depends(p, n);
      if (depends.of(d) & point_axes(n) & ~common_axes(n)) continue;
      std::map<Id, Id> zeros, unit;
      for (Read* r : z) zeros[read_leaf(p, Type::real, r->arg)] = p.literal(0.0);
      for (size_t c = 0; c < n.lift.size(); ++c) {
        const ir::Value& id = n.monoid->identity[c];
        unit[p.leaf(Op::var, id.type, int64_t(2 * c))] = p.literal(id);
        unit[p.leaf(Op::var, id.type, int64_t(2 * c + 1))] =
            expr::substitute(p, expr::present(p, n.lift[c]).value, zeros);
      }
      bool identity = true;
      for (size_t c = 0; c < n.lift.size() && identity; ++c)
        identity = expr::simplify(p, expr::substitute(p, n.monoid->combine[c], unit)) ==
                   p.literal(n.monoid->identity[c]);
      const Domain both = ir::pruned(ir::intersection(n.domain, d), n.extents(), g.symbols);
      if (!identity || ir::disjoint(both).size() > ir::most_pieces) continue;
      if (!already) n.domain = both;
    }
    for (Read* r : z) {
      if (!is_one_term(p, r->source)) continue;
      const expr::Present x = expr::present(p, r->source.lift[0]);
      const auto at = picked_axes(r->source, n.args[size_t(r->arg)]);
      Import in(p, r->source, n, [&](int y) { return at.at(y); });
      Id body = in.body(x.value);
      Id exists = expr::conjunction(p, expr::conjuncts(p, ordered(p, in.body(x.when))));
      if (!in.why().empty()) continue;
      if (!already && !n.monoid) exists = expr::both(p, in.guard(d), exists); // a map has no identity
      if (exists != expr::yes(p))                                             // the 0 stays
        body = p.make(Op::or_else, {p.make(Op::only, {exists, body}), p.literal(0.0)});
      for (Id& l : n.lift) l = expr::substitute(p, l, {{read_leaf(p, Type::real, r->arg), body}});
      fired = true;
    }
  }
  return fired;
}

Result<Rewritten> apply_one_term_splice(const Graph& g) {
  const auto live = alive(g);
  std::vector<char> one(g.nodes.size(), 0);
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* c = g[id].comp();
    if (!live[id] || !c) continue;
    one[id] = c->monoid && is_one_term(g.pool, *c);
    for (auto& a : c->args) any = any || one[a.from.node];
  }
  if (!any) return Refusal{"nothing reads a fold of one term"};
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!splice_folds(e.to, n)) return {};
    return g.label({id, 0});
  });
  if (c.what.empty()) return Refusal{"a term is not the identity where the one-term folds are 0"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph one_term_splice_witness() {
  ir::Builder b;
  auto x = b.input("x", {5, 4}), w = b.input("w", {4, 3});
  auto [i, j, c] = ir::axes<"i j c">();
  // Sums over no axes, as the adjoint of an unmasked producer of a masked consumer makes them.
  auto a = sum(ir::Over(std::vector<ir::Axis>{}), masked(j <= i, x(i, j)));
  auto d = sum(ir::Over(std::vector<ir::Axis>{}), masked(j <= i, x(i, j) * x(i, j)));
  b.output(ir::map({i, c}, sum(j, (a + d) * w(j, c))), "y");
  return b.graph();
}
} // namespace

Rule one_term_splice() {
  return {"one_term_splice",
          {"where all reads that are 0 outside D are 0 the term is the identity: D joins the domain and the "
           "folds of one term are spliced",
           "one_term_splice", Law::exact},
          apply_one_term_splice,
          one_term_splice_witness};
}

} // namespace tang::rewrite
