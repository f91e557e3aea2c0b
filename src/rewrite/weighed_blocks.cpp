// Weighed blocks: a sum of products whose operands carry a weight for each block of terms is the weighed sum
// of the blocks' own products, which matrix instructions take as they are stored.
#include <algorithm>

#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr int64_t fewest_in_a_block = 32; // of a block, to be worth a multiplication of each result

// One array as it is stored, in a format that matrix instructions take.
bool is_operand(const Graph& g, const Comp& n, Id f) {
  const expr::Term& t = g.pool[f];
  if (t.op != Op::arg) return false;
  auto* in = g[n.args[size_t(t.whole)].from.node].input();
  return in && expr::type_of(in->format) == Type::real &&
         (expr::row(in->format).bits <= 16 || in->format == ir::Format::tf32);
}

// The operands of a term, its weights, and the fold axes that no weight depends on.
struct Weighed {
  Product operands, weights;
  Axes inner = 0;
};

std::optional<Weighed> weighed(Graph& g, const Comp& n) {
  Pool& p = g.pool;
  if (!is_plain_fold(p, n, Op::add) || n.folds.size() < 2 || n.domain != ir::everywhere() || !axes_fit(n) ||
      !is_plain_component(p, n, 0, Op::add) || n.monoid->identity[0].type != Type::real)
    return {};
  const expr::Present x = expr::present(p, n.lift[0]);
  if (x.when != expr::yes(p) || !never_empty(n, g.symbols)) return {};
  Dependence depends(p, n);
  const Product all = product_of(p, x.value);
  Weighed out;
  Axes sides[2] = {}, outer = 0;
  for (Id f : all.factors) {
    const bool operand = is_operand(g, n, f);
    if (operand && out.operands.factors.size() < 2) sides[out.operands.factors.size()] = depends.of(f);
    (operand ? out.operands : out.weights).factors.push_back(f);
    if (!operand) outer |= depends.of(f);
  }
  out.weights.divisors = all.divisors;
  for (Id d : all.divisors) outer |= depends.of(d);
  if (out.operands.factors.size() != 2 || out.weights.factors.size() + out.weights.divisors.size() == 0)
    return {};
  const Axes folds = fold_axes(n), points = point_axes(n);
  out.inner = folds & ~outer;
  if (!(folds & outer) || !(sides[0] & ~sides[1] & points) || !(sides[1] & ~sides[0] & points)) return {};
  if ((sides[0] & sides[1] & out.inner) != out.inner || !out.inner) return {};
  int64_t terms = 1;
  for (int a = 0; a < n.axis_count(); ++a)
    if (out.inner & bit(a)) terms = n.extent(a).is_constant() ? terms * n.extent(a).value() : 0;
  return terms >= fewest_in_a_block ? std::optional(out) : std::nullopt;
}
} // namespace

Graph weighed_blocks(const Graph& g) {
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    const auto w = weighed(e.to, n);
    if (!w) return {};
    Pool& p = e.to.pool;
    // The blocks' products: the points, then the axes of blocks.
    Comp block, sum;
    std::map<int, int> in_block, in_sum;
    Arg read{{0, 0}, {}};
    ir::Out out;
    for (int a = 0; a < n.axis_count(); ++a) {
      if (w->inner & bit(a)) continue;
      out.axes.push_back(in_block[a] = int(block.points.size()));
      block.points.push_back(n.extent(a));
      in_sum[a] = in_block[a]; // points keep their places, folds follow in their order
      read.view.push_back(ir::axis(in_sum[a]));
    }
    for (int a = 0; a < n.axis_count(); ++a)
      if (w->inner & bit(a))
        in_block[a] = int(block.points.size() + block.folds.size()), block.folds.push_back(n.extent(a));
    sum.points = n.points;
    sum.folds.assign(block.points.begin() + int64_t(n.points.size()), block.points.end());
    block.monoid = sum.monoid = n.monoid;
    block.outs = {out}, sum.outs = n.outs;
    Import terms(p, n, block, [&](int a) { return ir::axis(in_block.at(a)); });
    block.lift = {terms.body(term_of(p, w->operands))};
    Import weights(p, n, sum, [&](int a) { return ir::axis(in_sum.at(a)); });
    Product lift;
    for (Id f : w->weights.factors) lift.factors.push_back(weights.body(f));
    for (Id d : w->weights.divisors) lift.divisors.push_back(weights.body(d));
    if (!terms.why().empty() || !weights.why().empty()) return {};
    read.from = {e.to.add({std::move(block), "block", e.from[id].where}), 0};
    lift.factors.push_back(read_leaf(p, Type::real, add_read(sum, read)));
    sum.lift = {term_of(p, lift)};
    n = std::move(sum);
    return g.label({id, 0});
  });
  return c.what.empty() ? g : ir::canonical(c.graph).graph;
}

} // namespace tang::rewrite
