#include "tang/kernel/expander.hpp"

#include <algorithm>
#include <tuple>

namespace tang::kernel::role {

// Blocks of work: a flat number becomes the grid's variables, in the order that the fields name.
void Expander::decode(Works& w) {
  Block& to = w.decode;
  std::vector<int64_t> counts;
  for (auto& g : k_.grid) counts.push_back(ceil_div(g.extent, g.step));
  auto set = [&](size_t axis, const Affine& beside) {
    const Affine block = int(axis) == shared_axis_ ? f_.cluster * beside + variable(p_.rank) : beside;
    put(to,
        role::Let{kernel::Let{k_.grid[axis].var, kernel::Let::affine, {k_.grid[axis].step * block}, 1, {}}});
  };
  auto divide = [&](const Affine& value, const Affine& by) {
    Divide d{fresh("q"), fresh("m"), value, by};
    put(to, d);
    return std::pair(variable(d.quotient), variable(d.remainder));
  };
  auto unpack = [&](Affine left, const std::vector<size_t>& axes) { // the last varies fastest
    for (size_t i = axes.size(); i-- > 0;) {
      if (i == 0) {
        set(axes[0], left);
      } else {
        const auto [q, m] = divide(left, constant(counts[axes[i]]));
        set(axes[i], m);
        left = q;
      }
    }
  };
  // The axis of rows: the grid variable in the rows of a contraction's result. Columns: one that another
  // operand has.
  const auto rows = parts_.contracts[0].a >= 0 ? grid_axes_of(parts_.contracts[0].a) : std::vector<size_t>{};
  const auto columns = grid_axes_of(parts_.contracts[0].b);
  std::vector<size_t> others;
  for (size_t g = 0; g < k_.grid.size(); ++g)
    if (!(rows.size() == 1 && g == rows[0])) others.push_back(g);
  auto sections = [&](const Affine& value, int64_t size, int64_t all, int64_t beside) {
    const auto [s, in] = divide(value, constant(size * beside));
    if (all % size == 0) return std::tuple(size * s, in, constant(size));
    const Var n = fresh("n");
    put(to, role::Let{kernel::Let{n, kernel::Let::min, {constant(size), constant(all) - size * s}, 1, {}}});
    return std::tuple(size * s, in, variable(n));
  };
  Affine flat = variable(w.w);
  if (f_.split > 1) { // the parts of a tile one after the other, so that they run at once
    put(to, Divide{tile_, p_.part, flat, constant(f_.split)});
    flat = variable(tile_);
  } else if (f_.cluster > 1) { // the workgroups of a cluster one after the other
    const Divide d{fresh("q"), p_.rank, flat, constant(f_.cluster)};
    put(to, d);
    flat = variable(d.quotient), counts[size_t(shared_axis_)] /= f_.cluster;
  }
  if (f_.order == target::WorkOrder::grouped && rows.size() == 1 && columns.size() == 1 &&
      columns[0] != rows[0]) {
    others.erase(std::find(others.begin(), others.end(), columns[0]));
    const int64_t xs = counts[rows[0]], ys = counts[columns[0]];
    Affine left = flat;
    if (!others.empty()) {
      const auto [batch, in] = divide(flat, constant(xs * ys));
      unpack(batch, others);
      left = in;
    }
    const auto [x0, in, n] = sections(left, std::min<int64_t>(f_.group, xs), xs, ys);
    const auto [y, x] = divide(in, n);
    set(rows[0], x0 + x), set(columns[0], y);
  } else if ((f_.order == target::WorkOrder::longest_first ||
              f_.order == target::WorkOrder::first_rows_first) &&
             rows.size() == 1 && !others.empty()) {
    int64_t heads = 1;
    for (size_t g : others) heads *= counts[g];
    const int64_t ys = counts[rows[0]];
    const auto [x0, in, n] = sections(flat, std::min<int64_t>(f_.group, heads), heads, ys);
    const auto [y, x] = divide(in, n);
    set(rows[0], f_.order == target::WorkOrder::longest_first ? constant(ys - 1) - y : y);
    unpack(x0 + x, others);
  } else {
    std::vector<size_t> all;
    for (size_t g = 0; g < k_.grid.size(); ++g) all.push_back(g);
    unpack(flat, all);
  }
}

} // namespace tang::kernel::role
