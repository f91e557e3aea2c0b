#include "tang/kernel/expander.hpp"

#include <algorithm>

// A fragment's elements that are added to a global, where others may add to them as well.
namespace tang::kernel::role {

namespace {
bool is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// `at` as a number whose digits are axes of the statement: coefficient k of a digit is the product of the extents of
// the faster ones.
std::optional<RowAxes> digits_of(const Affine& at, const std::vector<TileAxis>& axes) {
  if (at.c) return {};
  RowAxes out;
  for (auto& [v, k] : at.terms) {
    const auto axis = std::find_if(axes.begin(), axes.end(), [v = v](auto& x) { return x.var == v; });
    if (axis == axes.end()) return {};
    out.digits.push_back(*axis);
  }
  std::sort(out.digits.begin(), out.digits.end(), [&](auto& x, auto& y) {
    return coefficient(at, x.var) > coefficient(at, y.var);
  });
  int64_t below = 1;
  for (size_t d = out.digits.size(); d-- > 0; below *= out.digits[d].extent)
    if (coefficient(at, out.digits[d].var) != below || (d && !is_power(out.digits[d].extent))) return {};
  return out;
}
} // namespace

bool Expander::adds(const kernel::Stmt& s) const {
  auto* a = std::get_if<Apply>(&s.node);
  return a && added_to(k_, *a) >= 0;
}

std::optional<Add> Expander::added(const Apply& whole) {
  const int to = added_to(k_, whole);
  if (to < 0 || !whole.bounds.empty() || !whole.partial.empty()) return {};
  Add out{whole, {}, {}, 0};
  out.what.body = addend(k_, whole, to);
  const expr::Term& v = (*k_.pool)[out.what.body.values[0]];
  if (v.op != expr::Op::arg) return {};
  const Ref& from = out.what.body.refs[size_t(v.whole)];
  const Memory& m = k_.memories[size_t(from.memory)];
  const FragmentShape shape = m.home == Home::fragment ? fragment_shape(m) : FragmentShape{};
  if (shape.row_dims.size() != 1 || shape.column_dim < 0 || expr::row(m.format).bits != 32) return {};
  const auto row = digits_of(from.index[size_t(shape.row_dims[0])].affine, whole.axes);
  const auto column = digits_of(from.index[size_t(shape.column_dim)].affine, whole.axes);
  if (!row || !column || row->digits.size() + column->digits.size() != whole.axes.size()) return {};
  for (auto& c : whole.dst[0].index)
    if (!c.refs.empty()) return {};
  out.row = *row, out.column = *column, out.columns = shape.columns;
  out.row.flat = fresh("row"), out.column.flat = fresh("column");
  return out;
}

std::string Expander::adds_refuse(const kernel::Stmt& s) {
  return added(std::get<Apply>(s.node)) ? "" : "what is added to its result is no fragment as lanes hold it";
}

} // namespace tang::kernel::role
