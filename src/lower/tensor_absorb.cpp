#include "tang/lower/tensor_lowerer.hpp"

#include <cmath>
#include <numeric>

#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/kernel/row_terms.hpp"

namespace tang::lower {

using expr::Op;
using expr::Type;
using ir::Id;
using kernel::Apply;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

// Where a bound of a product's domain fails, a factor is read outside its array, where it is 0: no mask is
// needed.
No TensorLowerer::absent_outside(const ir::Comp& n, const MemberForm& form) const {
  if (n.domain == ir::everywhere()) return {};
  if (n.domain.size() != 1) return "its domain is a union";
  auto implied = [&](const ir::Form& bound, const Contraction& c) {
    for (auto* side : {&c.sides.a, &c.sides.b}) {
      const expr::Term& t = g_.pool[stored_value(g_.pool, c.factors[size_t((*side)[0])])];
      if (side->size() != 1 || t.op != Op::arg) continue;
      const ir::Arg& a = n.args[size_t(t.whole)];
      const auto shape = g_.shape(a.from);
      for (size_t d = 0; d < a.view.size(); ++d)
        for (auto& inside : {a.view[d], ir::constant(shape[d] - ir::Extent(1)) - a.view[d]}) // each >= 0
          if (const ir::Form rest = bound - inside; rest.is_constant() && rest.c.value() >= 0) return true;
    }
    return false;
  };
  for (auto& bound : n.domain[0])
    for (auto& [port, c] : form.contractions)
      if (!implied(bound, c)) return "its domain masks single products";
  return {};
}

// A fold that moves with its base: mask the scores, fold the base, weigh, rescale, add, contract.
No TensorLowerer::absorb(const plan::Member& m, const MemberForm& form) {
  const ir::Comp& n = comp(m.node);
  kernel::Pool& p = *f_.k.pool;
  const std::vector<int>& bases = form.absorb.base;
  for (int c : form.absorb.added)
    if (bases.empty() && !form.contractions.count(c)) return "a sum that is no contraction";
  if (bases.empty()) {
    if (No no = absent_outside(n, form)) return no;
    for (int c : form.absorb.added)
      if (No no = contract(n, m.axis, form.contractions.at(c), {m.node, uint32_t(c)}, {}, true)) return no;
    return {};
  }
  if (bases.size() != 1) return "its weights depend on several values of a row";
  const int base = bases[0];
  const expr::Value identity = n.monoid->identity[size_t(base)];
  const std::vector<int> row_axes = f_.wide(n, m.axis, n.outs[size_t(base)].axes);
  std::vector<int> folds(n.folds.size()), both = row_axes;
  std::iota(folds.begin(), folds.end(), int(n.points.size()));
  both.insert(both.end(), folds.begin(), folds.end());
  if (row_axes.size() != 1 || folds.size() != 1) return "its weights are no matrix of rows and terms";
  const int64_t rows = f_.extent(n, m.axis, row_axes[0]), terms = f_.extent(n, m.axis, folds[0]);

  // The terms' base values: a score that some contraction left, masked; computed where they are more than a
  // multiple of it.
  Id when = expr::yes(g_.pool);
  for (Id l : n.lift) when = expr::both(g_.pool, when, expr::present(g_.pool, l).when);
  const bool predicate = when != expr::yes(g_.pool);
  const Id lift = expr::present(g_.pool, n.lift[size_t(base)]).value;
  const kernel::Scaled simple = kernel::scaled(g_.pool, lift);
  const expr::Term& score = g_.pool[simple.rest];
  const bool is_score = score.op == Op::arg && f_.has_tile(n.args[size_t(score.whole)].from);
  const bool kept =
      is_score && simple.factor > 0 && std::isinf(identity.r); // then the score itself is masked
  auto place_terms = [&] { return place(n, m.axis, both); };
  {
    Place at = place_terms();
    Body b = f_.body(n, at, m.axis);
    Apply a;
    a.axes = at.axes;
    a.body.values = {b.value(kept ? simple.rest : lift)};
    if (predicate) a.body.when = b.value(when);
    if (domain_ != ir::everywhere()) a.partial = b.pieces(domain_);
    a.body.refs = b.out.refs, a.body.guards = b.out.guards;
    // In place where only that tile is read; else beside it.
    std::optional<Ref> own;
    for (auto& r : a.body.refs) {
      const kernel::Memory& x = f_.k.memories[size_t(r.memory)];
      if (x.home == kernel::Home::fragment && kernel::fragment_shape(x).columns == terms) own = r;
      if (x.home == kernel::Home::global) a.body.refs[size_t(&r - a.body.refs.data())].checked = true;
    }
    if (!own) return "its weights read no contraction";
    a.dst = {*own};
    a.fill = {identity};
    score_ = *own;
    score_axes_ = at.axes;
    pipe_.body.push_back({std::move(a)});
  }
  // The tile at these two axes of a statement.
  auto at_tile = [&](const std::vector<kernel::TileAxis>& axes) {
    Ref r = score_;
    for (auto& c : r.index)
      for (size_t i = 0; i < 2; ++i)
        if (coefficient(c.affine, score_axes_[i].var))
          c.affine = c.affine - variable(score_axes_[i].var) + variable(axes[i].var);
    return r;
  };
  auto base_value = [&](Body& b, const Place& at) {
    const expr::Id leaf = b.leaf(at_tile(at.axes), Type::real);
    return kept && simple.factor != 1 ? p.make(Op::mul, {p.literal(simple.factor), leaf}) : leaf;
  };
  const Port base_port{m.node, uint32_t(base)};
  auto per_row = [&](Ref dst, const std::function<expr::Id(Body&, const Place&)>& value) {
    Place at = place(n, m.axis, row_axes);
    Body b = f_.body(n, at, m.axis);
    Apply a;
    a.axes = at.axes;
    a.body.values = {value(b, at)};
    a.body.refs = b.out.refs;
    for (auto& c : dst.index) c.affine = variable(at.axes[0].var);
    a.dst = {dst.memory >= 0 ? dst : f_.tile_ref(base_port, at)};
    a.fill = {std::nullopt};
    pipe_.body.push_back({std::move(a)});
  };
  auto row_tile = [&](const char* name) { return Ref{fragment(name, {rows}), {{Affine{}, {}}}, false}; };
  auto row_leaf = [&](Body& b, Ref r, const Place& at) {
    r.index[0].affine = variable(at.axes[0].var);
    return b.leaf(r, Type::real);
  };
  const Ref old = row_tile("y"), scale = row_tile("a");
  per_row(old, [&](Body& b, const Place& at) { return b.leaf(f_.tile_ref(base_port, at), Type::real); });
  auto fold = [&](Port port, const std::function<expr::Id(Body&, const Place&)>& term, expr::Id combine,
                  const expr::Value& start) {
    Place at = place_terms();
    Fold s;
    s.kept = {at.axes[0]}, s.folded = {at.axes[1]};
    Body b = f_.body(n, at, m.axis);
    s.body.values = {term(b, at)};
    s.body.refs = b.out.refs;
    s.dst = {f_.tile_ref(port, at)};
    s.identity = {start};
    s.combine = {combine};
    s.accumulate = true;
    pipe_.body.push_back({std::move(s)});
  };
  const expr::Id join =
      expr::transplant(g_.pool, n.monoid->combine[size_t(base)], p,
                       [&](const expr::Term& t) { return p.leaf(Op::var, t.type, t.whole % 2); });
  fold(base_port, base_value, join, identity);
  // act over (own base, new base); where it reads the join of both, the new base is that join.
  auto act = [&](Id a, expr::Id own, expr::Id now) {
    const std::map<Id, Id> joins{
        {n.monoid->combine[size_t(base)], g_.pool.leaf(Op::var, identity.type, 2 * base + 1)}};
    return expr::transplant(g_.pool, expr::substitute(g_.pool, a, joins), p,
                            [&](const expr::Term& t) { return t.whole % 2 ? now : own; });
  };
  const Id one_act = form.absorb.act.at(form.absorb.added[0]);
  for (int c : form.absorb.added)
    if (form.absorb.act.at(c) != one_act) return "its components move by different weights";
  per_row(scale, [&](Body& b, const Place& at) {
    const expr::Id own = row_leaf(b, old, at);
    return act(one_act, own, b.leaf(f_.tile_ref(base_port, at), Type::real));
  });
  { // weights, where the scores were
    Place at = place_terms();
    Body b = f_.body(n, at, m.axis);
    const expr::Id own = base_value(b, at);
    Apply a;
    a.axes = at.axes;
    a.body.values = {act(one_act, own, b.leaf(f_.tile_ref(base_port, at), Type::real))};
    a.body.refs = b.out.refs;
    a.dst = {at_tile(at.axes)};
    a.fill = {std::nullopt};
    pipe_.body.push_back({std::move(a)});
  }
  auto rescale = [&](int c) {
    const Port port{m.node, uint32_t(c)};
    Place at = place(n, m.axis, f_.wide(n, m.axis, n.outs[size_t(c)].axes));
    Body b = f_.body(n, at, m.axis);
    Apply a;
    a.axes = at.axes;
    Ref s = scale;
    s.index[0].affine = variable(at.axes[size_t(at.find(row_axes[0]))].var);
    const expr::Id own = b.leaf(f_.tile_ref(port, at), Type::real);
    a.body.values = {p.make(Op::mul, {own, b.leaf(s, Type::real)})};
    a.body.refs = b.out.refs;
    a.dst = {f_.tile_ref(port, at)};
    a.fill = {std::nullopt};
    pipe_.body.push_back({std::move(a)});
  };
  for (int c : form.absorb.added) {
    if (form.contractions.count(c)) continue;
    rescale(c);
    const Id l = expr::present(g_.pool, n.lift[size_t(c)]).value;
    fold(
        {m.node, uint32_t(c)},
        [&](Body& b, const Place& at) {
          const expr::Id w = b.leaf(at_tile(at.axes), Type::real), value = b.value(l);
          const bool one = p[value].op == Op::literal && p[value].r == 1;
          return one ? w : p.make(Op::mul, {w, value});
        },
        p.make(Op::add, {p.leaf(Op::var, Type::real, 0), p.leaf(Op::var, Type::real, 1)}), expr::real(0));
  }
  for (int c : form.absorb.added) // pieces are summed by themselves, and scaled where that sum is added
    if (form.contractions.count(c) && !tensor_.pieces) rescale(c);
  const std::vector<kernel::TileAxis> axes = place_terms().axes;
  const bool power = g_.pool[expr::present(g_.pool, one_act).value].op == Op::exp2;
  const std::vector<int> weight = as_operand(at_tile(axes), axes, power);
  for (auto& [c, x] : form.contractions)
    if (No no = contract(n, m.axis, x, {m.node, uint32_t(c)}, weight, true, &scale)) return no;
  return {};
}

} // namespace tang::lower
