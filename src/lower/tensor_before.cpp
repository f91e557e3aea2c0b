#include "tang/lower/tensor_lowerer.hpp"

#include <algorithm>

// Kernels beside the one of matrix instructions: operands laid out anew, extrema of blocks of rows, sums of
// parts.
namespace tang::lower {

using expr::Op;
using expr::Type;
using ir::Id;
using kernel::Apply;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

// Can a bulk copy address the read? Plain coordinates, one side's elements next to each other, 16-byte rows,
// five dimensions. What a ragged last block of terms reads beyond them must lie outside the array, where it
// is 0.
bool TensorLowerer::addressable(const ir::Comp& n, const ir::Arg& a, int k, const Axes& side, int64_t terms,
                                kernel::Format f) const {
  constexpr int64_t most_apart = 8; // places between the elements of a box
  const auto shape = g_.shape(a.from);
  int64_t bytes = expr::row(f).bits / 8;
  bool aligned = shape.size() <= 5 && shape.size() >= 2;
  for (size_t d = shape.size(); d-- > 0;) {
    if (d + 1 < shape.size()) aligned &= bytes % 16 == 0;
    bytes *= shape[d].value();
  }
  const bool ragged = n.extent(k).value() % terms;
  for (size_t d = 0; d < a.view.size(); ++d) {
    const ir::Form& v = a.view[d];
    if (ragged && v.axis(k)) aligned &= v.is_pick() && shape[d].value() == n.extent(k).value();
    aligned &= v.args.empty();
    int moved = v.axis(k) != 0;
    aligned &= v.axis(k) == 0 || v.axis(k) == 1;
    for (auto& [x, var] : side) {
      moved += v.axis(x) != 0;
      aligned &= v.axis(x) >= 0 && v.axis(x) <= (d + 1 < a.view.size() ? most_apart : 1);
    }
    aligned &= moved <= 1;
  }
  // Instructions of 32-bit operands take rows of terms only.
  return aligned && (a.view.back().axis(k) == 1 ||
                     (side.size() == 1 && a.view.back().axis(side[0].first) == 1 && expr::row(f).bits == 16));
}

// A copy whose lanes would read far apart: they read along the other axis into a tile, which they then store.
// The tile's rows begin in different banks.
void TensorLowerer::turned(Frame& frame, Apply& a) const {
  const kernel::TileAxis row = a.axes[0], column = a.axes[1];
  const int tile = frame.scratch("x", {row.extent, column.extent}, frame.k.compute, {column.extent + 1, 1});
  Apply first = a;
  first.axes = {column, row};
  first.dst = {{tile, {{variable(row.var), {}}, {variable(column.var), {}}}, false}};
  emit(frame.k.body, std::move(first));
  a.body = {};
  a.body.refs = {{tile, {{variable(row.var), {}}, {variable(column.var), {}}}, false}};
  a.body.values = {frame.k.pool->leaf(Op::arg, Type::real, 0)};
}

// The operand's values in rows of terms, by a kernel of its own; the element at this place.
Result<Ref> TensorLowerer::copied(const ir::Comp& n, const Contraction& c, int factor, int side, int k,
                                  const Place& at) {
  constexpr int64_t rows = 32,
                    terms = 64; // of a block: what it reads stays in the near cache, however it lies
  const std::set<int> axes = axes_of(g_, n, c.factors[size_t(factor)]);
  if (!axes.count(side)) return Refusal{"an operand does not depend on its side"};
  plan::Group group;
  Choice choice;
  std::vector<int> own(size_t(n.axis_count()), -1), order;
  for (int x : axes)
    if (x != k && x != side) order.push_back(x);
  order.insert(order.end(), {side, k}); // rows of terms
  if (order.size() > 5) return Refusal{"an operand has more than five dimensions"};
  const kernel::Format format = f_.format(n.args[size_t(g_.pool[c.factors[size_t(factor)]].whole)].from);
  for (int x : order) {
    own[size_t(x)] = int(group.extent.size());
    const int64_t e = n.extent(x).value();
    group.extent.push_back(x == k ? round_up(e, 128 / expr::row(format).bits) : e);
    choice.tile.push_back(std::min(group.extent.back(), x == k ? terms : x == side ? rows : 1));
  }
  group.role.assign(group.extent.size(), plan::Role::grid);
  Frame frame(g_, plan_, around_, group, choice, target_);
  Place pl;
  pl.at.resize(size_t(n.axis_count()));
  Ref dst, src;
  kernel::Memory memory;
  memory.format = format;
  memory.shape = group.extent;
  memory.strides = kernel::row_major(memory.shape);
  Apply a;
  for (int x : order) {
    const size_t d = size_t(own[size_t(x)]);
    pl.at[size_t(x)] = variable(frame.block[d]);
    if (x == side || x == k) {
      const kernel::Var v = frame.k.fresh(x == k ? "k" : "r");
      a.axes.push_back({v, choice.tile[d]});
      pl.at[size_t(x)] = pl.at[size_t(x)] + variable(v);
      if (group.extent[d] % choice.tile[d])
        a.bounds.push_back({constant(group.extent[d] - 1) - pl.at[size_t(x)], {}});
    }
    dst.index.push_back({pl.at[size_t(x)], {}});
    src.index.push_back({at.at[size_t(x)], {}});
  }
  Body body = frame.body(n, pl, own);
  body.out.values.push_back(body.value(c.factors[size_t(factor)]));
  for (auto& r : body.out.refs) r.checked |= group.extent.back() != n.extent(k).value(); // padding reads 0
  a.fill = {std::nullopt};
  a.body = std::move(body.out);
  const int id = int(temporaries_.size());
  dst.memory = frame.temporary(id, memory, true);
  temporaries_.push_back(frame.k.memories[size_t(dst.memory)].size() * expr::row(format).bits / 8 + 64);
  a.dst = {dst};
  const ir::Arg& read = n.args[size_t(g_.pool[c.factors[size_t(factor)]].whole)];
  if (!read.view.back().axis(k) && read.view.back().axis(side)) turned(frame, a);
  emit(frame.k.body, std::move(a));
  Lowered copy;
  copy.arguments = std::move(frame.arguments);
  copy.kernel = std::move(frame.k);
  copy.schedule = "rows of terms";
  globals_first(copy.kernel);
  before_.push_back(std::move(copy));
  src.memory = f_.temporary(id, memory, false);
  return src;
}

// An integer a row, folded over each block of rows by a kernel of its own before this one.
std::optional<std::pair<Affine, Affine>> TensorLowerer::extrema(const ir::Comp& n,
                                                                const std::vector<int>& core, int arg) {
  if (auto it = extrema_.find(arg); it != extrema_.end()) return it->second;
  const ir::Arg& a = n.args[size_t(arg)];
  const int64_t tile = f_.tile(tensor_.rows), rows = group_.extent[size_t(tensor_.rows)];
  plan::Group group;
  Choice choice;
  std::vector<int> own(size_t(n.axis_count()), -1);
  int row = -1;
  Ref dst, src;
  for (auto& v : a.view) {
    if (!v.args.empty()) return {};
    for (auto& [x, k] : v.axes) {
      const int c = core[size_t(x)];
      if (c < 0 || group_.role[size_t(c)] != plan::Role::grid || (c != tensor_.rows && f_.tile(c) != 1))
        return {};
      if (c == tensor_.rows) row = x;
      own[size_t(x)] = 0;
    }
  }
  if (row < 0 || f_.has_tile(a.from)) return {};
  for (int x = 0; x < n.axis_count(); ++x)
    if (own[size_t(x)] >= 0 && x != row)
      own[size_t(x)] = int(group.extent.size()), group.extent.push_back(n.extent(x).value());
  own[size_t(row)] = int(group.extent.size());
  group.extent.push_back((rows + tile - 1) / tile);
  group.role.assign(group.extent.size(), plan::Role::grid);
  choice.tile.assign(group.extent.size(), 1);
  Frame frame(g_, plan_, around_, group, choice, target_);
  kernel::Memory memory;
  memory.shape = group.extent;
  memory.strides = kernel::row_major(memory.shape);
  memory.format = kernel::Format::i64;
  Place pl;
  pl.at.resize(size_t(n.axis_count()));
  const kernel::Var r = frame.k.fresh("r"), block = f_.k.fresh("u");
  for (int x = 0; x < n.axis_count(); ++x)
    if (own[size_t(x)] >= 0) pl.at[size_t(x)] = variable(frame.block[size_t(own[size_t(x)])]);
  pl.at[size_t(row)] = tile * pl.at[size_t(row)] + variable(r);
  for (size_t d = 0; d < group.extent.size(); ++d) dst.index.push_back({variable(frame.block[d]), {}});
  lets_.push_back(
      {kernel::Let{block, kernel::Let::floor_div, {variable(f_.block[size_t(tensor_.rows)])}, tile, {}}});
  src.index.resize(group.extent.size());
  for (int x = 0; x < n.axis_count(); ++x)
    if (own[size_t(x)] >= 0)
      src.index[size_t(own[size_t(x)])] = {variable(x == row ? block : f_.block[size_t(core[size_t(x)])]),
                                           {}};
  std::pair<Affine, Affine> out;
  kernel::Pool& p = *frame.k.pool;
  for (bool greatest : {false, true}) {
    Body body = frame.body(n, pl, own);
    Fold f;
    f.folded = {{r, tile}};
    if (rows % tile) f.limits.push_back({constant(rows - 1) - pl.at[size_t(row)], {}});
    const Ref read = body.out.refs[size_t(body.ref(arg))];
    f.body.refs = {read};
    f.body.values = {p.leaf(Op::arg, Type::index, 0)};
    f.identity = {expr::whole(greatest ? INT64_MIN : INT64_MAX)};
    f.combine = {p.make(greatest ? Op::max : Op::min,
                        {p.leaf(Op::var, Type::index, 0), p.leaf(Op::var, Type::index, 1)})};
    const int id = int(temporaries_.size());
    dst.memory = frame.temporary(id, memory, true);
    temporaries_.push_back(frame.k.memories[size_t(dst.memory)].size() * 8 + 64);
    f.dst = {dst};
    emit(frame.k.body, std::move(f));
    src.memory = f_.temporary(id, memory, false);
    const kernel::Var v = f_.k.fresh("u");
    lets_.push_back({kernel::Let{v, kernel::Let::load, {}, 1, src}});
    (greatest ? out.second : out.first) = variable(v);
  }
  Lowered l;
  l.arguments = std::move(frame.arguments);
  l.kernel = std::move(frame.k);
  l.schedule = "extrema of blocks of " + std::to_string(tile) + " rows";
  globals_first(l.kernel);
  before_.push_back(std::move(l));
  return extrema_.emplace(arg, out).first->second;
}

} // namespace tang::lower
