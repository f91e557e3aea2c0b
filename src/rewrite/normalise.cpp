// Normalise: exp2(A) / l is exp2(A - log2 l) where exp2(A) is literally a live term of l. `ratio` asks for l
// > 0 besides: it gives 0 where every term is exp2(-inf), and the exponent would be -inf + inf.
#include <algorithm>

#include "tang/expr/diff.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// The exponent of a sum's terms: of a plain sum of exp2(A), or of a component 1 that is rescaled by exp2 of
// the base.
struct Exponent {
  Comp node; // the fold, perhaps with a read of its own base
  Id exponent;
  Id when; // a term's predicate
};

std::optional<Exponent> exponent_of(Graph& g, Port l) {
  Pool& p = g.pool;
  const Comp* c = g[l.node].comp();
  if (!c || !c->monoid || !c->outs[l.port].view.empty() || !axes_fit(*c)) return {};
  const expr::Present own = expr::present(p, c->lift[l.port]);
  Exponent out{*c, 0, own.when};
  if (is_plain_fold(p, *c, Op::add)) {
    if (p[own.value].op != Op::exp2) return {};
    out.exponent = p[own.value].args[0];
    return out;
  }
  if (p[own.value].op != Op::literal || p[own.value].r != 1) return {};
  const auto act =
      expr::linear_factor(p, c->monoid->combine[l.port], p.leaf(Op::var, Type::real, 2 * int64_t(l.port)));
  if (!act || p[*act].op != Op::select || p[p[*act].args[2]].op != Op::exp2) return {};
  const Id e = p[p[*act].args[2]].args[0];
  std::map<Id, Id> to;
  for (size_t b = 0; b < out.node.lift.size(); ++b) {
    if (!is_plain_component(p, *c, b, Op::max) && !is_plain_component(p, *c, b, Op::min)) continue;
    Arg self{{l.node, uint32_t(b)}, {}};
    for (int a : c->outs[b].axes) self.view.push_back(ir::axis(a));
    to[c->monoid->combine[b]] = read_leaf(p, Type::real, add_read(out.node, self));
    to[p.leaf(Op::var, Type::real, 2 * int64_t(b))] = expr::present(p, out.node.lift[b]).value;
  }
  out.exponent = expr::substitute(p, e, to);
  if (!expr::subterms(p, out.exponent, Op::var).empty()) return {};
  return out;
}

// A number (neither inf nor NaN) by its construction, inputs being numbers.
bool is_number(const Graph& g, const Comp& n, Id term) {
  const Pool& p = g.pool;
  if (!expr::finite(p, term)) return false;
  for (Id x : expr::subterms(p, term, Op::arg)) {
    if (p[x].type != Type::real) continue;
    const Port from = n.args[size_t(p[x].whole)].from;
    if (g[from.node].input()) continue;
    const Comp* c = g[from.node].comp();
    if (!c || !(c->is_map() || is_plain_fold(p, *c, Op::add)) || !is_number(g, *c, c->lift[0])) return false;
  }
  return true;
}

// Is l > 0 wherever a term of it is live and none is NaN? Either the exponents are numbers; or one of them is
// 0: the exponent holds the max (or min) of some s over the very terms of l and vanishes where s is that max.
bool is_positive_sum(Graph& g, const Exponent& l) {
  Pool& p = g.pool;
  if (is_number(g, l.node, l.exponent)) return true;
  const int folded = int(l.node.points.size());
  for (Id x : expr::subterms(p, l.exponent, Op::arg)) {
    const Arg read = l.node.args[size_t(p[x].whole)];
    const Comp* m = g[read.from.node].comp();
    if (!m || !m->monoid || !m->outs[read.from.port].view.empty() || !axes_fit(*m)) continue;
    if (!is_plain_component(p, *m, read.from.port, Op::max) &&
        !is_plain_component(p, *m, read.from.port, Op::min))
      continue;
    if (m->folds.size() != 1 || !(m->folds[0] == l.node.folds[0])) continue;
    const Comp top = *m;
    const auto picked = picked_axes(top, read);
    Comp trial = l.node;
    bool missing = false;
    Import in(p, top, trial, [&](int y) {
      if (size_t(y) >= top.points.size()) return ir::axis(folded);
      auto it = picked.find(y);
      missing |= it == picked.end();
      return it == picked.end() ? ir::constant(0) : it->second;
    });
    const expr::Present term = expr::present(p, top.lift[read.from.port]);
    const Id s = in.body(term.value), when = ordered(p, in.body(term.when));
    const Domain of_max = ir::pruned(in.domain(top.domain), trial.extents(), g.symbols);
    const Domain of_sum = ir::pruned(l.node.domain, trial.extents(), g.symbols);
    if (missing || !in.why().empty() || !ir::implies(of_max, of_sum) || !ir::implies(of_sum, of_max))
      continue;
    if (expr::simplify(p, expr::substitute(p, l.exponent, {{x, s}})) != p.literal(0.0)) continue;
    // The terms of the max are those of the sum; what else the sum asks is asked of the row as a whole.
    const auto of_terms = expr::conjuncts(p, when), asked = expr::conjuncts(p, ordered(p, l.when));
    Dependence depends(p, trial);
    auto among = [](const std::vector<Id>& all, Id c) {
      return std::find(all.begin(), all.end(), c) != all.end();
    };
    const bool wider = std::all_of(of_terms.begin(), of_terms.end(), [&](Id c) { return among(asked, c); });
    const bool same = std::all_of(asked.begin(), asked.end(),
                                  [&](Id c) { return among(of_terms, c) || !(depends.of(c) & bit(folded)); });
    if (wider && same) return true;
  }
  return false;
}

// Is exp2(a) the term of l at some axis of n, live wherever n's term is? `by_ratio`: and l > 0 there.
bool is_live_term(Graph& g, const Comp& n, Id a, Id l, Id when, bool by_ratio) {
  Pool& p = g.pool;
  if (p[l].op != Op::arg) return false;
  const Arg read = n.args[size_t(p[l].whole)];
  const auto sum = exponent_of(g, read.from);
  if (!sum || sum->node.folds.size() != 1) return false;
  if (by_ratio && !is_positive_sum(g, *sum)) return false;
  const auto picked = picked_axes(*g[read.from.node].comp(), read);
  for (int x = 0; x < n.axis_count(); ++x) {
    if (!(n.extent(x) == sum->node.folds[0])) continue;
    Comp trial = n;
    bool missing = false;
    Import in(p, sum->node, trial, [&](int y) {
      if (size_t(y) >= sum->node.points.size()) return ir::axis(x);
      auto it = picked.find(y);
      missing |= it == picked.end();
      return it == picked.end() ? ir::constant(0) : it->second;
    });
    const Domain d = ir::pruned(in.domain(sum->node.domain), n.extents(), g.symbols);
    const Id e = in.body(sum->exponent), alive = ordered(p, in.body(sum->when));
    if (missing || !in.why().empty() || !ir::implies(n.domain, d)) continue;
    if (alive != expr::yes(p) && alive != ordered(p, when)) continue;
    if (expr::simplify(p, e) != expr::simplify(p, a)) continue;
    return true;
  }
  return false;
}

std::optional<Id> normalised(Graph& g, Comp& n, Id lift) {
  Pool& p = g.pool;
  const expr::Present x = expr::present(p, lift);
  Product f = product_of(p, x.value);
  Dependence depends(p, n);
  const Axes folds = fold_axes(n);
  for (size_t k = 0; k < f.factors.size(); ++k) {
    if (p[f.factors[k]].op != Op::exp2) continue;
    const Id a = p[f.factors[k]].args[0];
    auto with_log = [&](Id l) {
      const expr::E e = expr::E{&p, a} - log2(expr::E{&p, l});
      f.factors[k] = exp2(e).id;
      const Id out = term_of(p, f);
      return x.when == expr::yes(p) ? out : p.make(Op::only, {x.when, out});
    };
    // A divisor that the fold leaves alone is hoisted instead.
    for (size_t d = 0; d < f.divisors.size(); ++d)
      if (const Id l = f.divisors[d]; (depends.of(l) & folds) && is_live_term(g, n, a, l, x.when, true)) {
        f.divisors.erase(f.divisors.begin() + long(d));
        return with_log(l);
      }
    for (size_t d = 0; d < f.factors.size(); ++d)
      if (p[f.factors[d]].op == Op::recip)
        if (const Id l = p[f.factors[d]].args[0];
            (depends.of(l) & folds) && is_live_term(g, n, a, l, x.when, false)) {
          const Id keep = f.factors[k];
          f.factors.erase(f.factors.begin() + long(d));
          k = size_t(std::find(f.factors.begin(), f.factors.end(), keep) - f.factors.begin());
          return with_log(l);
        }
  }
  return {};
}

bool has_site(const Pool& p, const Comp& n) {
  if (!n.monoid || n.folds.empty() || !axes_fit(n)) return false;
  for (Id l : n.lift) {
    bool power = false, divides = false;
    for (Id x : expr::schedule(p, {l})) {
      power |= p[x].op == Op::exp2;
      divides |= (p[x].op == Op::recip && p[p[x].args[0]].op == Op::arg) ||
                 (p[x].op == Op::ratio && p[p[x].args[1]].op == Op::arg);
    }
    if (power && divides) return true;
  }
  return false;
}

Result<Rewritten> apply_normalise(const Graph& g) {
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size() && !any; ++id)
    if (auto* c = g[id].comp()) any = has_site(g.pool, *c);
  if (!any) return Refusal{"no term of a fold divides an exponential"};
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!has_site(e.to.pool, n)) return {};
    bool fired = false;
    for (Id& l : n.lift)
      while (auto next = normalised(e.to, n, l)) {
        l = *next;
        fired = true;
      }
    if (!fired) return {};
    return g.label({id, 0});
  });
  if (c.what.empty()) return Refusal{"no divisor is the sum of the very exponential"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph normalise_witness() {
  ir::Builder b;
  auto s = b.input("s", {5, 4}), u = b.input("u", {5, 3});
  auto [i, j, c] = ir::axes<"i j c">();
  auto score = masked(j <= i, s(i, j)), top = max(j, score), weight = exp(score - top);
  // What a gradient of attention asks for: the weights again, summed over the rows.
  b.output(ir::map({j, c}, sum(i, ratio(weight, sum(j, weight)) * u(i, c))), "dv");
  return b.graph();
}
} // namespace

Rule normalise() {
  return {"normalise",
          {"exp2(A) / l = exp2(A - log2 l) where exp2(A) is a live term of l = sum exp2(A) and, for ratio, "
           "some term is above 0",
           "normalise_sound", Law::algebraic},
          apply_normalise,
          normalise_witness};
}

} // namespace tang::rewrite
