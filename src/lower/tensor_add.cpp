#include "tang/lower/tensor_lowerer.hpp"

#include <algorithm>

// Results of a weighed group that lie along its loop: every block of rows adds its part of them in memory. The
// part is a contraction of the weights over the block's rows: its own rows are the result's columns, so that
// each team has as many of them as of the others' rows, and the weights are its columns' operand.
namespace tang::lower {

using expr::Op;
using expr::Type;
using kernel::Apply;
using kernel::constant;
using kernel::variable;

namespace {
constexpr int64_t cleared_block = 8192; // elements that a workgroup clears

// An accumulator of matrix instructions (wgmma_d, kernel/fragment.hpp) lies in the sums as its lanes hold it, so that
// a lane adds runs of four: its rows are digits (warps, 2, 8), its columns digits (instructions, 4, 2), and the fastest
// in memory are a lane's own. All digits, the slowest first, with what they count: rows or columns, how many.
struct Digit {
  bool row;
  int64_t extent, of; // 0: as many as there are; places from one to the next
};

constexpr Digit digits[] = {{true, 0, 16}, {false, 0, 8}, {true, 8, 1}, {false, 4, 2}, {true, 2, 8}, {false, 2, 1}};

std::vector<kernel::TileAxis> lane_axes(kernel::Kernel& k, int64_t rows, int64_t columns) {
  std::vector<kernel::TileAxis> out;
  for (auto& d : digits)
    out.push_back({k.fresh(d.row ? "x" : "y"), d.extent ? d.extent : (d.row ? rows : columns) / d.of});
  return out;
}

// The row, or the column, that the digits make.
Affine number_of(const std::vector<kernel::TileAxis>& axes, bool row) {
  Affine out;
  for (size_t d = 0; d < axes.size(); ++d)
    if (digits[d].row == row) out = out + variable(axes[d].var, digits[d].of);
  return out;
}
} // namespace

// The axis of the member's result that the loop blocks.
int TensorLowerer::axis_along(const Added& x) const {
  const auto& axes = comp(x.member.node).outs[0].axes;
  for (int a : axes)
    if (x.member.axis[size_t(a)] == tensor_.loop) return a;
  return -1;
}

// The sums as they are added to, f32: for each block of the loop its digits. The loop's dimension names the block by its
// first place and steps over the others.
No TensorLowerer::place_sums(Added& x) {
  const ir::Comp& n = comp(x.member.node);
  const int row = axis_along(x), column = x.form.sides.n[0];
  if (x.form.sides.k.size() != 1 || n.outs.size() != 1 || row < 0)
    return "a result that is added to is no contraction over the rows";
  for (int a : n.outs[0].axes)
    if (a != row && a != column) x.order.push_back(a);
  x.order.push_back(row);
  const int64_t rows = n.extent(column).value(), terms = f_.tile(tensor_.loop);
  if (rows % 16 || terms % 8) return "a result that is added to is no whole fragment";
  for (int a : x.order) {
    if (x.member.axis[size_t(a)] < 0) return "a result that is added to has private axes";
    x.sums.shape.push_back(n.extent(a).value());
  }
  x.sums.shape.back() = round_up(x.sums.shape.back(), terms);
  x.sums.strides = kernel::row_major(x.sums.shape);
  for (auto& s : x.sums.strides) s *= rows;
  std::vector<int64_t> block;
  for (auto& d : digits) block.push_back(d.extent ? d.extent : (d.row ? rows : terms) / d.of);
  x.sums.shape.insert(x.sums.shape.end(), block.begin(), block.end());
  for (int64_t s : kernel::row_major(block)) x.sums.strides.push_back(s);
  x.sums.format = kernel::Format::f32;
  x.temporary = int(temporaries_.size());
  temporaries_.push_back(x.sums.size() * 4 + 64);
  return {};
}

// The weights go to shared memory, where all teams read them.
No TensorLowerer::start_adding(Added& x, int weights) {
  const ir::Comp& n = comp(x.member.node);
  const int column = x.form.sides.n[0];
  const int64_t rows = f_.tile(tensor_.rows), terms = f_.tile(tensor_.loop);
  if (tensor_.pieces) return "what is added is made of pieces";
  if (group_.extent[size_t(tensor_.rows)] % rows) return "rows that do not exist would be added";
  if (n.extent(column).value() != rows)
    return "a result that is added to has other columns than a block has rows";
  Apply copy;
  copy.axes = {{f_.k.fresh("x"), rows}, {f_.k.fresh("y"), terms}};
  copy.body.refs = {whole(weights, copy.axes)};
  copy.body.values = {f_.k.pool->leaf(Op::arg, Type::real, 0)};
  copy.fill = {std::nullopt};
  const int shared = f_.scratch("o", {rows, terms}, tensor_.format);
  f_.k.memories[size_t(shared)].home = kernel::Home::shared;
  copy.dst = {whole(shared, copy.axes)};
  pipe_.body.push_back({std::move(copy)});
  kernel::Contract k;
  k.m = {{f_.k.fresh("m"), rows}}, k.n = {{f_.k.fresh("n"), terms}}, k.k = {{f_.k.fresh("k"), rows}};
  if (No no = operand(n, x.member.axis, x.form, x.form.sides.b, {{column, k.m[0].var}}, k.k[0].var, -1, k.a))
    return no;
  k.b = {shared, {{variable(k.k[0].var), {}}, {variable(k.n[0].var), {}}}, false};
  x.part = fragment("u", {rows, terms});
  k.dst = {x.part, {{variable(k.m[0].var), {}}, {variable(k.n[0].var), {}}}, false};
  k.accumulate = false;
  pipe_.body.push_back({std::move(k)});
  return {};
}

void TensorLowerer::finish_adding(const Added& x) {
  kernel::Pool& p = *f_.k.pool;
  Apply add;
  add.axes = lane_axes(f_.k, f_.tile(tensor_.rows), f_.tile(tensor_.loop));
  Ref sum{f_.temporary(x.temporary, x.sums, true), {}, false};
  for (int a : x.order) sum.index.push_back({variable(f_.block[size_t(x.member.axis[size_t(a)])]), {}});
  for (auto& axis : add.axes) sum.index.push_back({variable(axis.var), {}});
  add.body.refs = {Ref{x.part, {{number_of(add.axes, true), {}}, {number_of(add.axes, false), {}}}, false}, sum};
  add.body.values = {p.make(Op::add, {p.leaf(Op::arg, Type::real, 0), p.leaf(Op::arg, Type::real, 1)})};
  add.dst = {sum};
  add.fill = {std::nullopt};
  pipe_.body.push_back({std::move(add)});
}

// All sums are 0 before the first block adds to them.
Lowered TensorLowerer::cleared(const Added& x) const {
  plan::Group group;
  Choice choice;
  kernel::Memory flat = x.sums;
  flat.shape = {x.sums.size()}, flat.strides = {1};
  group.extent = flat.shape, group.role = {plan::Role::grid};
  choice.tile = {std::min(cleared_block, flat.shape[0])};
  Frame frame(g_, plan_, around_, group, choice, target_);
  Apply a;
  a.axes = {{frame.k.fresh("x"), choice.tile[0]}};
  const Affine at = variable(frame.block[0]) + variable(a.axes[0].var);
  if (flat.shape[0] % choice.tile[0]) a.bounds = {{constant(flat.shape[0] - 1) - at, {}}};
  a.body.values = {frame.k.pool->literal(0.0)};
  a.dst = {{frame.temporary(x.temporary, flat, true), {{at, {}}}, false}};
  a.fill = {std::nullopt};
  emit(frame.k.body, std::move(a));
  return finished(frame, "sums of 0");
}

// After the last block: rows before columns, rounded to the result's format. Each block comes as it lies and is turned in
// shared memory.
Lowered TensorLowerer::rounded(const Added& x) const {
  const ir::Comp& n = comp(x.member.node);
  const int row = axis_along(x), column = x.form.sides.n[0];
  plan::Group group;
  Choice choice;
  std::vector<int> core(size_t(n.axis_count()), -1);
  std::vector<int> order = x.order;
  order.push_back(column);
  for (size_t d = 0; d < order.size(); ++d) {
    core[size_t(order[d])] = int(d);
    group.extent.push_back(n.extent(order[d]).value());
    choice.tile.push_back(order[d] == column ? group.extent[d] : order[d] == row ? f_.tile(tensor_.loop) : 1);
  }
  group.role.assign(group.extent.size(), plan::Role::grid);
  Frame frame(g_, plan_, around_, group, choice, target_);
  Place at = frame.place(n, core, {row, column});
  const int64_t columns = choice.tile.back(), rows = f_.tile(tensor_.loop);
  const int tile = frame.scratch("x", {columns, rows}, kernel::Format::f32, {rows + 1, 1});
  auto own = [&](int a) { return at.at[size_t(a)] - variable(frame.block[size_t(core[size_t(a)])]); };
  Apply in, out;
  in.axes = lane_axes(frame.k, columns, rows);
  Ref sum{frame.temporary(x.temporary, x.sums, false), {}, false};
  for (int a : x.order) sum.index.push_back({variable(frame.block[size_t(core[size_t(a)])]), {}});
  for (auto& axis : in.axes) sum.index.push_back({variable(axis.var), {}});
  in.body.refs = {sum};
  in.body.values = {frame.k.pool->leaf(Op::arg, Type::real, 0)};
  in.dst = {Ref{tile, {{number_of(in.axes, true), {}}, {number_of(in.axes, false), {}}}, false}};
  in.fill = {std::nullopt};
  out = in;
  out.axes = at.axes, out.bounds = at.tails;
  out.body.refs = {Ref{tile, {{own(column), {}}, {own(row), {}}}, false}};
  out.dst = {frame.global_ref({x.member.node, 0}, n, at, true)};
  emit(frame.k.body, std::move(in));
  emit(frame.k.body, std::move(out));
  return finished(frame, "turned and rounded");
}

} // namespace tang::lower
