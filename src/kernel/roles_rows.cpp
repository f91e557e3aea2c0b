#include "tang/kernel/expander.hpp"

#include <algorithm>

namespace tang::kernel::role {

Varies Expander::varies(const Body& b, Var column) const {
  auto moves = [column](const std::vector<Coordinate>& index, const std::vector<Ref>& refs) {
    std::function<bool(const std::vector<Coordinate>&)> any = [&](const std::vector<Coordinate>& at) {
      for (auto& c : at) {
        if (coefficient(c.affine, column)) return true;
        for (auto& [r, x] : c.refs)
          if (any(refs[size_t(r)].index)) return true;
      }
      return false;
    };
    return any(index);
  };
  auto memo = std::make_shared<std::map<Id, bool>>();
  return [this, &b, column, moves, memo](Id root) {
    const Pool& p = *k_.pool;
    for (Id id : expr::schedule(p, {root})) {
      if (memo->count(id)) continue;
      const expr::Term& t = p[id];
      bool v = t.op == expr::Op::coord && Var(t.whole) == column;
      if (t.op == expr::Op::arg) v = moves(b.refs[size_t(t.whole)].index, b.refs);
      if (t.op == expr::Op::holds)
        for (auto& piece : b.guards[size_t(t.whole)]) v |= moves(piece, b.refs);
      for (int i = 0; i < t.arity(); ++i) v |= memo->at(t.args[size_t(i)]);
      (*memo)[id] = v;
    }
    return memo->at(root);
  };
}

RowAxes Expander::row_axes(std::vector<TileAxis> axes) const {
  if (axes.empty()) return {};
  if (axes.size() == 1) return {axes[0].var, {}};
  return {row_, std::move(axes)};
}

// The axes of a statement over fragments, and its terms as a lane wants them.
Rows Expander::by_row(const kernel::Stmt& s) const {
  Rows out{s, {}, -1, false, 1, f_.polynomial};
  auto axes = [&](const std::vector<TileAxis>& all, const Ref& r) {
    const Memory& m = k_.memories[size_t(r.memory)];
    const FragmentShape shape = m.home == Home::fragment ? fragment_shape(m) : FragmentShape{};
    std::vector<TileAxis> rows; // the slowest first
    for (int d : shape.row_dims)
      for (auto& x : all)
        if (coefficient(r.index[size_t(d)].affine, x.var)) rows.push_back(x);
    for (auto& x : all) {
      const bool is_row = std::any_of(rows.begin(), rows.end(), [&](auto& y) { return y.var == x.var; });
      if (shape.row_dims.empty() && x.extent == parts_.rows)
        rows.push_back(x);
      else if (!is_row)
        out.column = x.var;
    }
    out.row = row_axes(std::move(rows));
  };
  if (auto* a = std::get_if<Apply>(&out.what.node)) {
    const Ref* on = &a->dst[0]; // a fragment says which axis is its rows
    for (auto& r : a->body.refs)
      if (k_.memories[size_t(on->memory)].home != Home::fragment &&
          k_.memories[size_t(r.memory)].home == Home::fragment)
        on = &r;
    axes(a->axes, *on);
    if (out.column >= 0)
      for (Id& v : a->body.values) v = kernel::by_rows(*k_.pool, v, varies(a->body, out.column));
  } else if (auto* f = std::get_if<Fold>(&out.what.node)) {
    out.row = row_axes(f->kept), out.column = f->folded[0].var;
    out.late = is_late(*f);
    f->body.values[0] = kernel::by_rows(*k_.pool, f->body.values[0], varies(f->body, out.column));
    const Scaled x = scaled(*k_.pool, f->body.values[0]);
    const expr::Op join = (*k_.pool)[f->combine[0]].op;
    if (join == expr::Op::add || ((join == expr::Op::max || join == expr::Op::min) && x.factor > 0))
      out.factor = x.factor, f->body.values[0] = x.rest;
  }
  return out;
}

// Lanes hold their own rows and every eighth pair of columns: a statement reads fragments at its own row, at
// its own column or a multiple of 8 beside it, and writes at its own.
std::string Expander::elsewhere(const kernel::Stmt& s) const {
  const Rows x = by_row(s);
  auto at = [&](const Ref& r, bool read) {
    const Memory& m = k_.memories[size_t(r.memory)];
    if (m.home != Home::fragment) return true;
    const FragmentShape shape = fragment_shape(m);
    auto own = [&](int d, Var v, bool beside) {
      const Coordinate& c = r.index[size_t(d)];
      return c.refs.empty() && v >= 0 && (c.affine - variable(v)).terms.empty() &&
             (beside ? c.affine.c % 8 == 0 : c.affine.c == 0);
    };
    for (size_t d = 0; d < shape.row_dims.size(); ++d)
      if (!own(shape.row_dims[d], d < x.row.digits.size() ? x.row.digits[d].var : x.row.flat, false)) return false;
    return shape.column_dim < 0 || own(shape.column_dim, x.column, read);
  };
  bool fits = true;
  auto all = [&](const Body& b, const std::vector<Ref>& dst) {
    for (auto& r : b.refs) fits &= at(r, true);
    for (auto& r : dst) fits &= at(r, false);
  };
  if (auto* a = std::get_if<Apply>(&s.node)) all(a->body, a->dst);
  if (auto* f = std::get_if<Fold>(&s.node)) all(f->body, f->dst);
  return fits ? "" : "a statement reads a fragment at rows or columns of other lanes";
}

// A sum whose tile is otherwise only scaled by row factors may stay in parts, one a lane, until the loop is
// over.
bool Expander::is_late(const Fold& f) const {
  return f.dst.size() == 1 && std::find(late_.begin(), late_.end(), f.dst[0].memory) != late_.end();
}

// A result of two axes in 16 or 32 bits goes through shared memory and a bulk copy; others are stored by the
// lanes.
void Expander::store(const Apply& a, Block& to) {
  if (auto sum = added(a)) return put(to, std::move(*sum));
  auto x = flushed(a);
  if (!x) return put(to, by_row({a}));
  Flush* before = to.empty() || f_.reuse ? nullptr : std::get_if<Flush>(&to.back().node);
  if (!before || !joined(*before, *x)) put(to, std::move(*x));
}

// The next slot's operand, once all who read what it held have released it.
void Expander::make(const Apply& a, Block& to) {
  const int tile = parts_.tile(a.dst[0].memory), ring = rings_of_[size_t(tile)];
  put(to, Await{ring, false});
  put(to, Fill{a.body.refs[0].memory, ring, offset_[size_t(tile)], slot_rows(tile) * line,
               parts_.tiles[size_t(tile)].columns, a});
}

std::optional<Flush> Expander::flushed(const Apply& a) {
  const Ref& dst = a.dst[0];
  const Memory& g = k_.memories[size_t(dst.memory)];
  const int last_dim = int(g.shape.size()) - 1, bits = expr::row(g.format).bits;
  bool bulk = a.dst.size() == 1 && a.axes.size() >= 2 && expr::type_of(g.format) == Type::real &&
              (bits == 16 || (bits == 32 && !f_.reuse)) && !a.body.when && a.partial.empty() &&
              last_dim <= 4 && last_dim >= 1 && g.strides[size_t(last_dim)] == 1;
  for (size_t d = 0; bulk && d < dst.index.size(); ++d)
    bulk = dst.index[d].refs.empty() && (int(d) == last_dim || g.strides[d] * bits / 8 % 16 == 0);
  Rows r = by_row({a});
  const int64_t width = line * 8 / bits;
  int64_t columns = 0;
  for (auto& axis : a.axes)
    if (axis.var == r.column && bulk)
      columns = coefficient(dst.index[size_t(last_dim)].affine, axis.var) == 1 ? axis.extent : 0;
  // A box reaches beyond the tile's columns only where the global ends: it would overwrite a neighbour.
  bulk = bulk && columns && (f_.tall || columns % width == 0 || columns >= g.shape[size_t(last_dim)]);
  const auto box = bulk ? warp_box(r.row, dst) : std::nullopt;
  if (!box) return {};
  Map m{dst.memory, *box, false, {}};
  m.box.back() = width;
  return Flush{std::get<Apply>(r.what.node), r.row, r.column, {map_for(std::move(m))}, f_.reuse ? 0 : -1,
               columns};
}

// The part of a global that a warp's rows fill, as a box of it: the fastest digits whole, then some of the
// next.
std::optional<std::vector<int64_t>> Expander::warp_box(const RowAxes& row, const Ref& dst) const {
  std::vector<int64_t> box(dst.index.size(), 1);
  std::vector<TileAxis> digits = row.digits;
  if (digits.empty()) digits = {{row.flat, warp_rows}};
  int64_t left = warp_rows;
  size_t before = dst.index.size() - 1; // dimensions go in the order of digits
  for (size_t x = digits.size(); x-- > 0 && left > 1;) {
    const int64_t some = std::min(left, digits[x].extent);
    if (left % some || digits[x].extent % some) return {};
    left /= some;
    size_t d = 0;
    while (d < before && !coefficient(dst.index[d].affine, digits[x].var)) ++d;
    if (d == before || coefficient(dst.index[d].affine, digits[x].var) != 1) return {};
    box[d] = some, before = d;
  }
  for (size_t d = 0; d < dst.index.size(); ++d) { // each dimension moves with one axis at most
    int64_t moved = 0;
    for (auto& x : digits) moved += coefficient(dst.index[d].affine, x.var) != 0;
    if (moved > (d + 1 < dst.index.size())) return {};
  }
  return left == 1 ? std::optional(box) : std::nullopt;
}

} // namespace tang::kernel::role
