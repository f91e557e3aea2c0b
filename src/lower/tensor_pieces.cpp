#include <algorithm>

#include "tang/kernel/rows.hpp"
#include "tang/lower/tensor_lowerer.hpp"

// Operands of 32 bits in 16-bit pieces: x = x0 + x1 + .., each what the ones before leave, rounded to 8 bits. A product
// is the products of all pairs of pieces i + j < n, onto one tile; the others are as small as what no piece holds.
// A piece has the range of 32-bit numbers, so that no scale is needed.
//
// Each block of terms is a sum of its own, added by ordinary arithmetic: the matrix unit cuts off what it adds beyond 24
// bits instead of rounding, which over thousands of terms is more than the pieces leave out.
namespace tang::lower {

using expr::Op;
using expr::Type;
using kernel::Apply;
using kernel::constant;
using kernel::Format;
using kernel::variable;

namespace {
constexpr Format piece_format = Format::bf16;
constexpr double largest = 0x1.fep127; // of the format: what rounds to more than that would be infinite
constexpr int64_t atom_rows = 64;

// What the pieces before leave of a value: leaf 0 is the value, leaf i + 1 piece i. But for the last one a piece of an
// infinite value is the largest number, so that what is left is infinite and no difference of infinities.
expr::Id left(kernel::Pool& p, int which, bool clamps) {
  expr::Id x = p.leaf(Op::arg, Type::real, 0);
  for (int i = 0; i < which; ++i)
    x = p.make(Op::add, {x, p.make(Op::neg, {p.leaf(Op::arg, Type::real, i + 1)})});
  if (clamps) x = p.make(Op::max, {p.make(Op::min, {x, p.literal(largest)}), p.literal(-largest)});
  return x;
}
} // namespace

// The tiles of a rows' operand with the values of a fragment. `bounded`: none of them is infinite.
std::vector<int> TensorLowerer::as_operand(const Ref& value, const std::vector<kernel::TileAxis>& axes, bool bounded) {
  const int pieces = std::max(1, tensor_.pieces);
  std::vector<int> out;
  Apply a;
  a.axes = axes;
  a.fill = {std::nullopt};
  a.body.refs = {value};
  for (int i = 0; i < pieces; ++i) {
    out.push_back(fragment("p", {axes[0].extent, axes[1].extent}, tensor_.format));
    f_.k.memories[size_t(out.back())].pieces = pieces;
    a.body.values = {left(*f_.k.pool, i, !bounded && i + 1 < pieces)};
    a.dst = {whole(out.back(), axes)};
    pipe_.body.push_back({a});
    a.body.refs.push_back(a.dst[0]);
  }
  return out;
}

No TensorLowerer::contract(const ir::Comp& n, const std::vector<int>& core, const Contraction& c, Port dst,
                           const std::vector<int>& weight, bool accumulate, const Ref* scale) {
  if (!tensor_.pieces) return multiply(n, core, c, dst, {}, weight, accumulate, -1, -1);
  Place at = place(n, core, f_.wide(n, core, n.outs[dst.port].axes));
  const Ref own = f_.tile_ref(dst, at);
  std::optional<int> sum; // of this block
  if (accumulate) {
    const kernel::Memory like = f_.k.memories[size_t(own.memory)];
    sum = fragment("u", like.shape);
    f_.k.memories[size_t(*sum)].strides = like.strides;
  }
  bool first = true; // the smallest products: what they add is not cut off
  for (int both = tensor_.pieces - 1; both >= 0; --both)
    for (int i = 0; i <= both; ++i, first = false)
      if (No no = multiply(n, core, c, dst, sum, weight, !first, i, both - i)) return no;
  if (!accumulate) return {};
  kernel::Pool& p = *f_.k.pool;
  Apply a;
  a.axes = at.axes;
  a.fill = {std::nullopt};
  a.dst = {own};
  Ref block = own;
  block.memory = *sum;
  a.body.refs = {own, block};
  expr::Id before = p.leaf(Op::arg, Type::real, 0);
  if (scale) {
    const int row = n.outs[dst.port].axes.empty() ? -1 : at.find(c.sides.m[0]);
    if (row < 0) return "a result has no rows to scale";
    Ref s = *scale;
    s.index[0].affine = variable(at.axes[size_t(row)].var);
    a.body.refs.push_back(s);
    before = p.make(Op::mul, {before, p.leaf(Op::arg, Type::real, 2)});
  }
  a.body.values = {p.make(Op::add, {before, p.leaf(Op::arg, Type::real, 1)})};
  pipe_.body.push_back({std::move(a)});
  return {};
}

// An array's piece, as it lies in memory but for rows that begin at multiples of 16 bytes.
Result<int> TensorLowerer::piece(Port port, int which) {
  const Bound whole = around_.bind(port);
  if (expr::type_of(whole.format) != Type::real) return Refusal{"an operand of integers has no pieces"};
  if (!whole.view.empty()) return Refusal{"an operand is a window"};
  if (whole.shape.size() < 2 || whole.shape.size() > 5) return Refusal{"an operand has no two dimensions, or more than five"};
  kernel::Memory m;
  m.format = tensor_.format, m.pieces = tensor_.pieces;
  m.shape = whole.shape;
  m.shape.back() = round_up(m.shape.back(), 128 / expr::row(m.format).bits);
  m.strides = kernel::row_major(m.shape);
  std::vector<int>& ids = pieces_[port];
  if (ids.empty()) {
    for (int i = 0; i < tensor_.pieces; ++i) {
      ids.push_back(int(temporaries_.size()));
      temporaries_.push_back(m.size() * expr::row(m.format).bits / 8 + 64);
    }
    before_.push_back(cut(port, whole, m, ids));
  }
  return f_.temporary(ids[size_t(which)], m, false);
}

// The kernel that makes them. Lanes have runs of a row each, in registers; rows too long for that go in blocks.
Lowered TensorLowerer::cut(Port port, const Bound& whole, const kernel::Memory& piece, const std::vector<int>& ids) {
  constexpr int64_t most_columns = 128, block = 4096; // elements of a workgroup
  const size_t rank = piece.shape.size();
  const int64_t columns = piece.shape[rank - 1];
  target::Target alone = target_;
  alone.cluster = 1;
  Lowered out = cut(port, whole, piece, ids, kernel::teams(columns, piece.size() / columns, 0, alone).rows, columns);
  if (auto dealt = kernel::deal_rows(out.kernel, target_, true)) {
    out.kernel = std::move(*dealt);
    return out;
  }
  const int64_t some = std::min(most_columns, columns);
  return cut(port, whole, piece, ids, std::max<int64_t>(1, block / some), some);
}

// Rows by columns of a block; beyond the array's own columns they are 0.
Lowered TensorLowerer::cut(Port port, const Bound& whole, const kernel::Memory& piece, const std::vector<int>& ids,
                           int64_t rows, int64_t columns) {
  const size_t rank = piece.shape.size();
  plan::Group group;
  Choice choice;
  group.extent = piece.shape;
  group.role.assign(rank, plan::Role::grid);
  choice.tile.assign(rank, 1);
  choice.tile[rank - 1] = columns;
  choice.tile[rank - 2] = std::min(rows, piece.shape[rank - 2]);
  Frame frame(g_, plan_, around_, group, choice, target_);
  if (columns == piece.shape[rank - 1]) frame.k.grid.pop_back(); // whole rows
  Apply a;
  a.fill = {std::nullopt};
  std::vector<Coordinate> here;
  for (size_t d = 0; d < rank; ++d) {
    Affine x = piece.shape[d] == choice.tile[d] && d + 1 == rank ? Affine{} : variable(frame.block[d]);
    if (choice.tile[d] > 1) {
      a.axes.push_back({frame.k.fresh(d + 1 == rank ? "c" : "r"), choice.tile[d]});
      x = x + variable(a.axes.back().var);
      if (piece.shape[d] % choice.tile[d]) a.bounds.push_back({constant(piece.shape[d] - 1) - x, {}});
    }
    here.push_back({x, {}});
  }
  a.body.refs = {{frame.global(port, false), here, piece.shape.back() != whole.shape.back()}};
  std::vector<int64_t> shape;
  Ref tile{-1, {}, false};
  for (auto& x : a.axes) shape.push_back(x.extent), tile.index.push_back({variable(x.var), {}});
  kernel::Pool& p = *frame.k.pool;
  for (int i = 0; i < int(ids.size()); ++i) {
    Apply to = a;
    to.dst = {{frame.temporary(ids[size_t(i)], piece, true), here, false}};
    to.body.values = {left(p, i, i + 1 < int(ids.size()))};
    if (i + 1 < int(ids.size())) { // rounded in a tile, from which what is left is made
      Apply rounds = to;
      tile.memory = frame.scratch("x", shape, piece.format);
      frame.k.memories[size_t(tile.memory)].pieces = piece.pieces;
      rounds.dst = {tile};
      emit(frame.k.body, std::move(rounds));
      to.body.refs = {tile};
      to.body.values = {p.leaf(Op::arg, Type::real, 0)};
      a.body.refs.push_back(tile);
    }
    emit(frame.k.body, std::move(to));
  }
  return finished(frame, "in pieces");
}

int pieces_of(const ir::Graph& g, const plan::Group& group, const Choice& forms, const schedule::Schedule& s,
              kernel::Format operands) {
  if (expr::type_of(operands) != Type::real || expr::row(operands).bits != 32) return 0;
  int pieces = s.pieces;
  for (auto& m : group.members)
    if (const schedule::GroupFields* f = schedule::fields_of(s, g, m.node)) pieces = f->pieces.value_or(pieces);
  if (operands != Format::tf32) return pieces;
  const bool product = forms.members[0].absorb.base.empty() && group.shared.empty();
  return product ? 0 : std::max(2, pieces); // two pieces hold more than the format does
}

namespace {
TensorChoice taken_in(TensorChoice c, int pieces) {
  c.pieces = pieces, c.format = piece_format, c.seconds = 0;
  return c;
}

// Blocks of one sum of products: the fewest waves of workgroups, each as slow as its arithmetic. Rows are divided as for
// whole operands.
void products(const std::vector<TensorChoice>& whole, const std::vector<int>& row_axes, int pieces,
              const plan::Group& group, const target::Target& t, int columns, std::vector<TensorChoice>& out) {
  struct Shape {
    int math;
    int64_t columns;
    double reached; // of the rate of the widest
  };
  constexpr int64_t terms = 64;
  std::vector<std::pair<double, TensorChoice>> order;
  for (const Shape s : {Shape{2, 192, 1.0}, Shape{2, 128, 0.96}, Shape{2, 64, 0.8}, Shape{1, 192, 0.75}, Shape{1, 128, 0.7},
                        Shape{1, 64, 0.5}}) {
    const auto like = std::find_if(whole.begin(), whole.end(), [&](const TensorChoice& w) {
      return w.roles.math == s.math && w.row_axes == row_axes;
    });
    if (like == whole.end()) continue;
    TensorChoice c = taken_in(*like, pieces);
    double work = 1;
    c.tile[size_t(columns)] = s.columns, c.tile[size_t(c.loop)] = terms;
    for (size_t a = 0; a < group.extent.size(); ++a)
      if (group.role[a] == plan::Role::grid) work *= double((group.extent[a] + c.tile[a] - 1) / c.tile[a]);
    const double waves = double((int64_t(work) + t.workers - 1) / t.workers);
    c.roles.math = s.math, c.roles.split = c.roles.cluster = 1;
    c.roles.producer_registers = s.math == 1 ? 40 : 24, c.roles.math_registers = s.math == 1 ? 232 : 240;
    constexpr int64_t barriers = 2048, staged = 2 * 8192; // bytes; the second for each team's results
    const int64_t slot = (atom_rows * s.math + s.columns) * terms * 2 * c.pieces;
    const int64_t slots = (t.shared_limit - barriers - s.math * staged) / slot;
    if (slots < 1) continue;
    c.roles.stages.assign(size_t(2 * c.pieces), int(std::min<int64_t>(slots, 6)));
    c.text = "roles " + std::to_string(s.math) + "x64x" + std::to_string(s.columns) + "x" + std::to_string(terms) + " in " +
             std::to_string(c.pieces) + " pieces stages " + std::to_string(c.roles.stages[0]);
    order.emplace_back(waves * double(s.math * s.columns) / s.reached, std::move(c));
  }
  std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (auto& c : order) out.push_back(std::move(c.second));
}
} // namespace

std::vector<TensorChoice> in_pieces(const std::vector<TensorChoice>& whole, int pieces, const plan::Group& group,
                                    const Choice& forms, const target::Target& t) {
  std::vector<TensorChoice> out;
  if (whole.size() == 1) return {taken_in(whole[0], pieces)}; // as the schedule says
  if (forms.members[0].absorb.base.empty() && group.shared.empty()) {
    const int columns = group.members[0].axis[size_t(forms.members[0].contractions.begin()->second.sides.n[0])];
    products(whole, whole.front().row_axes, pieces, group, t, columns, out);
    if (!whole.front().row_axes.empty()) products(whole, {}, pieces, group, t, columns, out);
    return out;
  }
  // Two teams first, then two slots, then the widest block of terms that registers and shared memory hold; one team
  // rather than blocks of a few terms.
  struct Form {
    int math;
    bool reuse;
    int64_t least; // terms
  };
  for (const Form f : {Form{2, false, 32}, Form{2, true, 32}, Form{1, false, 32}, Form{2, false, 16}, Form{2, true, 16},
                       Form{1, false, 16}})
    for (int slots : {2, 1})
      for (int64_t terms : {128, 112, 96, 80, 64, 48, 32, 16}) {
        if (terms < f.least) continue;
        TensorChoice c = taken_in(whole.front(), pieces);
        c.roles.math = f.math, c.roles.skew = 0, c.roles.turns = c.roles.late = false, c.roles.reuse = f.reuse;
        c.roles.hoisted = 1, c.roles.lag = 0, c.roles.split = c.roles.cluster = 1, c.roles.polynomial = 0;
        c.roles.producer_registers = 40, c.roles.math_registers = 232;
        c.roles.stages.assign(size_t(pieces) * 2 * (group.shared.size() + group.members.size()), slots);
        c.tile[size_t(c.rows)] = atom_rows * f.math, c.tile[size_t(c.loop)] = terms;
        c.text = "roles " + std::to_string(f.math) + "x64x" + std::to_string(terms) + " in " + std::to_string(pieces) +
                 " pieces stages " + std::to_string(slots) + (f.reuse ? " reuse" : "");
        out.push_back(std::move(c));
      }
  return out;
}

} // namespace tang::lower
