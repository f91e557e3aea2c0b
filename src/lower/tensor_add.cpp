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
constexpr int64_t turned_block = 64;  // rows and columns that a workgroup turns
constexpr int64_t cleared_block = 8192; // elements that a workgroup clears
} // namespace

// The axis of the member's result that the loop blocks.
int TensorLowerer::axis_along(const Added& x) const {
  const auto& axes = comp(x.member.node).outs[0].axes;
  for (int a : axes)
    if (x.member.axis[size_t(a)] == tensor_.loop) return a;
  return -1;
}

// The sums as they are added to: f32, columns before rows, which lie next to each other.
No TensorLowerer::place_sums(Added& x) {
  const ir::Comp& n = comp(x.member.node);
  const int row = axis_along(x), column = x.form.sides.n[0];
  if (x.form.sides.k.size() != 1 || n.outs.size() != 1 || row < 0)
    return "a result that is added to is no contraction over the rows";
  for (int a : n.outs[0].axes)
    if (a != row && a != column) x.order.push_back(a);
  x.order.insert(x.order.end(), {column, row});
  for (int a : x.order) {
    if (a != column && x.member.axis[size_t(a)] < 0) return "a result that is added to has private axes";
    x.sums.shape.push_back(n.extent(a).value());
  }
  if (x.order.size() > 5) return "a result that is added to has more than five dimensions";
  x.sums.format = kernel::Format::f32;
  x.sums.strides = kernel::row_major(x.sums.shape);
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
  const int row = axis_along(x), column = x.form.sides.n[0];
  Apply add;
  add.axes = {{f_.k.fresh("x"), f_.tile(tensor_.rows)}, {f_.k.fresh("y"), f_.tile(tensor_.loop)}};
  Ref sum{f_.temporary(x.temporary, x.sums, true), {}, false};
  for (int a : x.order) {
    const int core = x.member.axis[size_t(a)];
    Affine at = core < 0 ? constant(0) : variable(f_.block[size_t(core)]);
    if (a == column) at = at + variable(add.axes[0].var);
    if (a == row) at = at + variable(add.axes[1].var);
    sum.index.push_back({at, {}});
  }
  if (const int64_t all = x.sums.shape.back(); all % add.axes[1].extent)
    add.bounds = {{constant(all - 1) - sum.index.back().affine, {}}};
  add.body.refs = {whole(x.part, add.axes), sum};
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

// After the last block: rows before columns, rounded to the result's format. Blocks are turned in shared
// memory.
Lowered TensorLowerer::rounded(const Added& x) const {
  const ir::Comp& n = comp(x.member.node);
  const int row = axis_along(x), column = x.form.sides.n[0];
  plan::Group group;
  Choice choice;
  std::vector<int> core(size_t(n.axis_count()), -1);
  for (size_t d = 0; d < x.order.size(); ++d) {
    const bool wide = d + 2 >= x.order.size();
    core[size_t(x.order[d])] = int(d);
    group.extent.push_back(x.sums.shape[d]);
    choice.tile.push_back(wide ? std::min(turned_block, x.sums.shape[d]) : 1);
  }
  group.role.assign(group.extent.size(), plan::Role::grid);
  Frame frame(g_, plan_, around_, group, choice, target_);
  Place at = frame.place(n, core, {row, column});
  const int64_t rows = choice.tile.back(), columns = choice.tile[choice.tile.size() - 2];
  const int tile = frame.scratch("x", {columns, rows}, kernel::Format::f32, {rows + 1, 1});
  Ref here{tile, {{at.at[size_t(column)] - variable(frame.block[size_t(core[size_t(column)])]), {}},
                  {at.at[size_t(row)] - variable(frame.block[size_t(core[size_t(row)])]), {}}},
           false};
  Ref sum{frame.temporary(x.temporary, x.sums, false), {}, false};
  for (int a : x.order) sum.index.push_back({at.at[size_t(a)], {}});
  Apply in;
  in.axes = {at.axes.rbegin(), at.axes.rend()}; // along the rows, as the sums lie
  in.bounds = at.tails;
  in.body.refs = {sum};
  in.body.values = {frame.k.pool->leaf(Op::arg, Type::real, 0)};
  in.dst = {here};
  in.fill = {std::nullopt};
  Apply out = in;
  out.axes = at.axes;
  out.body.refs = {here};
  out.dst = {frame.global_ref({x.member.node, 0}, n, at, true)};
  emit(frame.k.body, std::move(in));
  emit(frame.k.body, std::move(out));
  return finished(frame, "turned and rounded");
}

} // namespace tang::lower
