#include <algorithm>

#include "tang/rewrite/terms.hpp"
#include "tang/run/budget.hpp"

// What kernels do that multiply 16-bit pieces, said in the graph itself, in exact arithmetic: the emulator needs no
// notion of them.
namespace tang::run {

using expr::Id;
using expr::Op;
using expr::Pool;
using ir::Comp;

namespace {
Id difference(Pool& p, Id a, Id b) { return p.make(Op::add, {a, p.make(Op::neg, {b})}); }

// The nearest number of 8 bits, in f64 (T. J. Dekker, A floating-point technique for extending the available precision,
// Numerische Mathematik 18, 1971): c - (c - x) for c = (2^45 + 1) x.
Id to_8_bits(Pool& p, Id x) {
  const Id c = p.make(Op::mul, {x, p.literal(0x1p45 + 1)});
  return difference(p, c, difference(p, c, x));
}

std::vector<Id> pieces_of(Pool& p, Id x, int n) {
  std::vector<Id> out;
  for (int i = 0; i < n; ++i) {
    out.push_back(to_8_bits(p, x));
    x = difference(p, x, out.back());
  }
  return out;
}

Id product(Pool& p, Id a, Id b, int n) {
  const std::vector<Id> x = pieces_of(p, a, n), y = pieces_of(p, b, n);
  std::optional<Id> sum;
  for (int i = 0; i < n; ++i)
    for (int j = 0; i + j < n; ++j) {
      const Id term = p.make(Op::mul, {x[size_t(i)], y[size_t(j)]});
      sum = sum ? p.make(Op::add, {*sum, term}) : term;
    }
  return *sum;
}

// The product with one of its factors taken from the others.
std::optional<Id> without(Pool& p, rewrite::Product all, Id factor) {
  all.factors.erase(std::find(all.factors.begin(), all.factors.end(), factor));
  if (all.factors.empty() && all.divisors.empty()) return {};
  return rewrite::term_of(p, all);
}

// A read along the folds that alone has some point: the columns' side of a product.
std::optional<Id> side(const Pool& p, const Comp& n, const rewrite::Product& all) {
  rewrite::Dependence depends(p, n);
  for (Id f : all.factors) {
    rewrite::Axes others = 0;
    for (auto* list : {&all.factors, &all.divisors})
      for (Id x : *list)
        if (x != f) others |= depends.of(x);
    const rewrite::Axes own = depends.of(f) & rewrite::point_axes(n) & ~others;
    if (p[f].op == Op::arg && own && (depends.of(f) & rewrite::fold_axes(n))) return f;
  }
  return {};
}

// combine(a, b) = a x + b w: the new term's weight times the term.
Id weighed(Pool& p, Id combine, int component, int n) {
  const Id term = p.leaf(Op::var, expr::Type::real, 2 * component + 1);
  if (p[combine].op != Op::add) return combine;
  std::vector<Id> sides(p[combine].args.begin(), p[combine].args.begin() + 2);
  for (Id& x : sides) {
    const rewrite::Product all = rewrite::product_of(p, x);
    if (!std::count(all.factors.begin(), all.factors.end(), term)) continue;
    if (const auto weight = without(p, all, term)) x = product(p, *weight, term, n);
  }
  return p.make(Op::add, sides);
}

void take_in_pieces(Pool& p, Comp& n, int pieces) {
  if (!n.monoid || !rewrite::axes_fit(n)) return;
  ir::Monoid m = *n.monoid;
  for (size_t c = 0; c < n.lift.size(); ++c) {
    const expr::Present lift = expr::present(p, n.lift[c]);
    const rewrite::Product all = rewrite::product_of(p, lift.value);
    const auto column = side(p, n, all);
    if (!column) continue;
    if (!rewrite::is_plain_component(p, n, c, Op::add)) {
      m.combine[c] = weighed(p, m.combine[c], int(c), pieces);
    } else if (const auto row = without(p, all, *column)) {
      const Id value = product(p, *row, *column, pieces);
      n.lift[c] = lift.when == expr::yes(p) ? value : p.make(Op::only, {lift.when, value});
    }
  }
  n.monoid = std::move(m);
}
} // namespace

ir::Graph in_pieces(const Derivation& d) {
  ir::Graph g = *d.plan.graph;
  std::map<ir::NodeId, int> nodes;
  for (auto& l : d.kernels.kernels) {
    if (!l.pieces) continue;
    const plan::Group& group = d.plan.steps[size_t(l.step)].group;
    for (auto& m : group.members) nodes[m.node] = l.pieces;
    for (auto& s : group.shared) nodes[s.node] = l.pieces;
  }
  for (auto& [id, pieces] : nodes)
    if (auto* n = std::get_if<Comp>(&g.nodes[id].what)) take_in_pieces(g.pool, *n, pieces);
  return g;
}

} // namespace tang::run
