#include "tang/kernel/role_points.hpp"

#include <cmath>

namespace tang::kernel::role {

int64_t RowPoints::at(const Affine& a) const {
  int64_t v = a.c;
  for (auto& [x, k] : a.terms) v += k * vars[size_t(x)];
  return v;
}

int64_t RowPoints::at(const Coordinate& c, const Body& b) {
  int64_t v = at(c.affine);
  for (auto& [r, k] : c.refs) v += k * element(b.refs[size_t(r)], &b).i;
  return v;
}

bool RowPoints::hold(const Bounds& all, const Body& b) {
  for (auto& c : all)
    if (at(c, b) < 0) return false;
  return true;
}

double* RowPoints::place(const Ref& r, const Body& b) {
  const Memory& m = kernel.memories[size_t(r.memory)];
  if (m.home == Home::fragment) {
    const FragmentShape s = fragment_shape(m);
    auto& v = fragments[r.memory];
    v.resize(size_t(team_rows * s.columns), std::nan(""));
    int64_t row = 0;
    for (int d : s.row_dims) row = row * m.shape[size_t(d)] + at(r.index[size_t(d)].affine);
    row -= first_row;
    return &v[size_t(row * s.columns + (s.column_dim < 0 ? 0 : at(r.index[size_t(s.column_dim)].affine) - first_column))];
  }
  if (m.home == Home::shared) return near(r.memory, at(r.index[0], b));
  int64_t flat = 0;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const int64_t i = at(r.index[d], b);
    if (i < 0 || i >= m.shape[d]) {
      if (!r.checked) outside("an element beyond dimension " + std::to_string(d) + " of " + m.name);
      return nullptr;
    }
    flat += i * m.strides[d];
  }
  return &globals[size_t(r.memory)].r[size_t(flat)];
}

expr::Value RowPoints::element(const Ref& r, const Body* b) {
  const Memory& m = kernel.memories[size_t(r.memory)];
  const Type t = expr::type_of(m.format);
  static const Body none;
  if (t == Type::real) {
    const double* p = place(r, b ? *b : none);
    return expr::real(p ? *p : 0);
  }
  if (m.home == Home::shared) {
    const double* p = place(r, b ? *b : none);
    return {t, expr::State::present, 0, p ? int64_t(*p) : 0};
  }
  int64_t flat = 0;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const int64_t i = b ? at(r.index[d], *b) : at(r.index[d].affine);
    if (i < 0 || i >= m.shape[d]) {
      if (!r.checked) outside("an element beyond dimension " + std::to_string(d) + " of " + m.name);
      return {t, expr::State::present, 0, 0};
    }
    flat += i * m.strides[d];
  }
  return {t, expr::State::present, 0, globals[size_t(r.memory)].i[size_t(flat)]};
}

int64_t RowPoints::integer(const Ref& r) { return element(r, nullptr).i; }

expr::Value RowPoints::evaluate(const Body& b, Id id) {
  return expr::evaluate(*kernel.pool, id, [&](const expr::Term& t) -> expr::Value {
    if (t.op == expr::Op::coord) return expr::whole(vars[size_t(t.whole)]);
    if (t.op == expr::Op::arg) return element(b.refs[size_t(t.whole)], &b);
    check(t.op == expr::Op::holds, "a leaf of a row's term");
    for (auto& piece : b.guards[size_t(t.whole)])
      if (hold(piece, b)) return expr::truth(true);
    return expr::truth(false);
  });
}

void RowPoints::write(const Ref& r, const Body& b, const expr::Value& v) {
  if (double* p = place(r, b)) *p = expr::rounded(v.r, kernel.memories[size_t(r.memory)].format);
}

void RowPoints::at_row(const RowAxes& axes, int64_t row) {
  if (axes.flat >= 0) vars[size_t(axes.flat)] = row;
  for (size_t d = axes.digits.size(); d-- > 0; row /= axes.digits[d].extent)
    vars[size_t(axes.digits[d].var)] = row % axes.digits[d].extent;
}

void RowPoints::run(const Rows& x) {
  auto* a = std::get_if<Apply>(&x.what.node);
  auto* f = std::get_if<Fold>(&x.what.node);
  int64_t columns = 1;
  for (auto& axis : a ? a->axes : f->folded)
    if (axis.var == x.column) columns = axis.extent;
  for (int64_t r = from; r < to; ++r) {
    at_row(x.row, first_row + r);
    expr::Value folded;
    for (int64_t c = 0; c < columns; ++c) {
      if (x.column >= 0) vars[size_t(x.column)] = first_column + c;
      if (f) {
        const expr::Value term = evaluate(f->body, f->body.values[0]);
        folded = c == 0 ? term : expr::evaluate(*kernel.pool, f->combine[0], [&](const expr::Term& t) {
          return t.whole % 2 ? term : folded;
        });
        continue;
      }
      bool live = a->partial.empty();
      for (auto& p : a->partial) live |= hold(p, a->body);
      live = live && hold(a->bounds, a->body) && (!a->body.when || evaluate(a->body, *a->body.when).i);
      for (size_t d = 0; d < a->dst.size(); ++d) {
        if (live)
          write(a->dst[d], a->body, evaluate(a->body, a->body.values[d]));
        else if (d < a->fill.size() && a->fill[d])
          write(a->dst[d], a->body, *a->fill[d]);
      }
    }
    if (!f) continue;
    folded.r *= x.factor;
    const expr::Value before = element(f->dst[0], &f->body);
    if (f->accumulate)
      folded = expr::evaluate(*kernel.pool, f->combine[0],
                              [&](const expr::Term& t) { return t.whole % 2 ? folded : before; });
    write(f->dst[0], f->body, folded);
  }
}

} // namespace tang::kernel::role
