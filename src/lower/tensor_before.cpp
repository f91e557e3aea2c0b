#include "tang/lower/tensor_lowerer.hpp"

#include <algorithm>

// Operands of matrix instructions that are laid out anew by a kernel of their own.
namespace tang::lower {

using expr::Op;
using expr::Type;
using ir::Id;
using kernel::Apply;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

// Can a bulk copy address the read? Plain coordinates, one side's elements next to each other, 16-byte rows,
// five dimensions. Rows of pieces are `padded` to that. What a ragged last block of terms reads beyond them must lie outside the array, where it
// is 0.
bool TensorLowerer::addressable(const ir::Comp& n, const ir::Arg& a, int k, const Axes& side, int64_t terms,
                                kernel::Format f, bool padded) const {
  constexpr int64_t most_apart = 8; // places between the elements of a box
  const auto shape = g_.shape(a.from);
  int64_t bytes = expr::row(f).bits / 8;
  bool aligned = shape.size() <= 5 && shape.size() >= 2;
  for (size_t d = shape.size(); d-- > 0;) {
    if (d + 1 < shape.size()) aligned &= padded || bytes % 16 == 0;
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
  before_.push_back(finished(frame, "rows of terms"));
  src.memory = f_.temporary(id, memory, false);
  return src;
}

} // namespace tang::lower
