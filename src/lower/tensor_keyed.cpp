#include "tang/expr/absence.hpp"
#include "tang/lower/tensor_lowerer.hpp"

// Sums of a block's weights at few points, each of which a key decides: the weights and the keys become tiles,
// and every point of a row adds the terms whose key it is.
namespace tang::lower {

using expr::Op;
using expr::Type;
using kernel::Apply;
using kernel::Fold;
using kernel::variable;

std::optional<Key> few_keys(const ir::Graph& g, const plan::Member& m) {
  constexpr int64_t most = 64;
  const ir::Comp& n = *g[m.node].comp();
  auto key = n.monoid && n.lift.size() == 1 ? solved(g, m, n) : std::nullopt;
  if (key && n.extent(key->axis).value() > most) key.reset();
  return key;
}

expr::Id stored_value(const expr::Pool& p, expr::Id factor) {
  const expr::Term& t = p[factor];
  return t.op == expr::Op::to_real && p[t.args[0]].op == expr::Op::arg ? t.args[0] : factor;
}

No TensorLowerer::weigh_by_key(const plan::Member& m, const Key& key) {
  kernel::Pool& p = *f_.k.pool;
  const ir::Comp& n = comp(m.node);
  const std::vector<kernel::TileAxis> axes{{f_.k.fresh("x"), f_.tile(tensor_.rows)},
                                           {f_.k.fresh("y"), f_.tile(tensor_.loop)}};
  Place at;
  for (int core : m.axis)
    at.at.push_back((core < 0 ? kernel::constant(0) : variable(f_.block[size_t(core)])) +
                    (core == tensor_.rows   ? variable(axes[0].var)
                     : core == tensor_.loop ? variable(axes[1].var)
                                            : kernel::constant(0)));
  Body b = f_.body(n, at, m.axis);
  const expr::Present lift = expr::present(g_.pool, n.lift[0]);
  const expr::Id weight = ordered(b.value(lift.value));
  const std::optional<expr::Id> when =
      lift.when == expr::yes(g_.pool) ? std::nullopt : std::optional(b.value(lift.when));
  const Coordinate where = b.coordinate(key.at);
  std::vector<kernel::Bounds> partial = domain_ == ir::everywhere() ? std::vector<kernel::Bounds>{} : b.pieces(domain_);
  expr::Id place = index_value(p, where.affine);
  for (auto& [r, k] : where.refs)
    place = p.make(Op::add, {place, p.make(Op::mul, {p.literal(expr::whole(k)), p.leaf(Op::arg, Type::index, r)})});
  kernel::Body all = std::move(b.out);
  std::vector<Ref> tiles; // of the contractions: they hold the weights and the keys from here on
  for (auto& r : all.refs)
    if (f_.k.memories[size_t(r.memory)].home == kernel::Home::fragment) tiles.push_back(r);
  if (tiles.empty()) return "a weight reads no contraction";
  if (tiles.size() < 2) tiles.push_back(whole(fragment("i", {axes[0].extent, axes[1].extent}), axes));
  for (auto& r : all.refs) bring_near(r, axes[0].var, axes[1].var);
  auto set = [&](expr::Id value, bool masked, const Ref& dst) {
    Apply a;
    a.axes = axes;
    if (masked) a.partial = partial;
    a.body = trimmed(all, {value}, masked ? when : std::nullopt, a.partial);
    a.dst = {dst};
    a.fill = {masked && (when || !partial.empty()) ? std::optional(expr::real(0)) : std::nullopt};
    pipe_.body.push_back({std::move(a)});
  };
  set(weight, true, tiles[0]);
  set(p.make(Op::to_real, {place}), false, tiles[1]);
  auto leaf = [&](int r) { return p.leaf(Op::arg, Type::real, r); };
  auto side = [&](int c) { return p.leaf(Op::var, Type::real, c); };
  std::vector<int> states;
  for (int64_t point = 0; point < n.extent(key.axis).value(); ++point) {
    states.push_back(fragment("s", {axes[0].extent}));
    const kernel::Var x = f_.k.fresh("x");
    Apply zero;
    zero.axes = {{x, axes[0].extent}};
    zero.body.values = {p.literal(0.0)};
    zero.dst = {whole(states.back(), zero.axes)};
    zero.fill = {std::nullopt};
    starts_.push_back({std::move(zero)});
    Fold sum;
    sum.kept = {axes[0]}, sum.folded = {axes[1]};
    sum.body.refs = {tiles[0], tiles[1]};
    const expr::Id mine = p.make(Op::equal, {leaf(1), p.literal(double(point))});
    sum.body.values = {p.make(Op::select, {mine, leaf(0), p.literal(0.0)})};
    sum.dst = {whole(states.back(), {axes[0]})};
    sum.identity = {expr::real(0)};
    sum.combine = {p.make(Op::add, {side(0), side(1)})};
    sum.accumulate = true;
    pipe_.body.push_back({std::move(sum)});
  }
  return store_keys(m, key, states);
}

No TensorLowerer::store_keys(const plan::Member& m, const Key& key, const std::vector<int>& states) {
  const ir::Comp& n = comp(m.node);
  std::vector<int> others;
  for (int a : n.outs[0].axes)
    if (a != key.axis) others.push_back(a);
  for (size_t point = 0; point < states.size(); ++point) {
    Place at = f_.place(n, m.axis, others);
    if (at.axes.size() != 1) return "a sum by key has other points than its rows";
    at.at[size_t(key.axis)] = kernel::constant(int64_t(point));
    Apply a;
    a.axes = at.axes, a.bounds = at.tails;
    a.body.refs = {whole(states[point], at.axes)};
    a.body.values = {f_.k.pool->leaf(Op::arg, Type::real, 0)};
    a.fill = {std::nullopt};
    a.dst = {f_.global_ref({m.node, 0}, n, at, true)};
    finish_.push_back({std::move(a)});
  }
  return {};
}

} // namespace tang::lower
