// Contractions: the register-blocked form, and the ways an operand reaches it.
#include <algorithm>

#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/price.hpp"

namespace tang::lower {

using kernel::Apply;
using kernel::Bounds;
using kernel::constant;
using kernel::Contract;
using kernel::TileAxis;
using kernel::variable;
using kernel::Var;

namespace {
// A row-major operand whose rows are this far apart stays in the caches' sets; beyond, it is laid out in panels first.
constexpr int64_t near_stride = 320;
constexpr int64_t small_operand = 32 << 10;  // elements
constexpr int64_t far_rows = 1024;  // elements between rows from which on they fall in few sets of the first level

constexpr int64_t most_of_a_part = 64, least_of_a_part = 16;  // terms of a panel that one workgroup copies

int64_t largest_divisor(int64_t of, int64_t most) {
  int64_t d = std::min(of, most);
  while (of % d) --d;
  return d;
}

std::set<int> axes_of_factors(const ir::Graph& g, const ir::Comp& n, const Contraction& c, const std::vector<int>& ids) {
  std::set<int> out;
  for (int f : ids) {
    if (f < 0) continue;
    const std::set<int> more = axes_of(g, n, c.factors[size_t(f)]);
    out.insert(more.begin(), more.end());
  }
  return out;
}
}  // namespace

Affine Emitters::base(const std::vector<int>& core, int axis) const {
  const int c = core[size_t(axis)];
  return c < 0 ? constant(0) : variable(f_.block[size_t(c)]);
}
std::vector<int> Emitters::folds_of(const ir::Comp& n) const {
  std::vector<int> out;
  for (int a = int(n.points.size()); a < n.axis_count(); ++a) out.push_back(a);
  return out;
}
// The bounds of the domain that a side's operand carries: those that name its axes, and those that name
// neither side's: a term that is not there must be 0 on both, since 0 times what lies there need not be.
ir::Conj Emitters::assumed_of(const Site& s, int side_axis) const {
  ir::Conj out;
  if (s.domain.size() != 1) return out;
  const ir::Comp& n = comp(s.node);
  const bool rows = side_axis == s.c.sides.m[0];
  auto names = [&](const std::set<int>& axes, bool of_rows) {
    const std::vector<int>& outer = of_rows ? s.c.outer_m : s.c.outer_n;
    return axes.count(of_rows ? s.c.sides.m[0] : s.c.sides.n[0]) || std::any_of(outer.begin(), outer.end(), [&](int a) { return axes.count(a); });
  };
  for (auto& f : s.domain[0]) {
    const std::set<int> axes = axes_of(n, f);
    if (names(axes, rows) || !(names(axes, false) || names(axes, true))) out.push_back(f);
  }
  return out;
}
Bounds Emitters::masks(const Site& s, Body& b, int side_axis) const {
  Bounds out;
  for (auto& f : assumed_of(s, side_axis)) out.push_back(b.coordinate(f));
  return out;
}

// A tile [panels][k..][width] of the product of `factors`, filled with 0 beyond the ends and where a mask fails.
Ref Emitters::staged(const Site& s, const std::vector<int>& factors, int side_axis, int64_t width, const Place& at) {
  const ir::Comp& n = comp(s.node);
  std::vector<int> ids = factors;
  std::sort(ids.begin(), ids.end());
  std::string key = std::to_string(s.node) + ":" + std::to_string(side_axis) + ":" + std::to_string(width);
  for (int x : ids) key += "," + std::to_string(s.c.factors[size_t(x)]);
  const bool predicate = s.c.when && side_axis == s.c.sides.m[0];
  if (predicate) key += " when " + std::to_string(*s.c.when);
  const int64_t panels = (f_.extent(n, s.core, side_axis) + width - 1) / width;
  const std::vector<int>& outer = side_axis == s.c.sides.m[0] ? s.c.outer_m : s.c.outer_n;
  auto known = staged_.find(key);
  if (known == staged_.end()) {
    Place pl;
    pl.at.resize(size_t(n.axis_count()));
    for (int a = 0; a < n.axis_count(); ++a) pl.at[size_t(a)] = base(s.core, a);
    const Var panel = f_.k.fresh("p"), lane = f_.k.fresh("q");
    pl.at[size_t(side_axis)] = pl.at[size_t(side_axis)] + variable(panel, width) + variable(lane);
    Apply a;
    std::vector<int64_t> shape;
    Ref dst{-1, {}, false};
    for (int x : outer) {
      const Var v = f_.k.fresh("x");
      const int64_t e = f_.extent(n, s.core, x), whole = n.extent(x).value();
      pl.at[size_t(x)] = pl.at[size_t(x)] + variable(v);
      a.axes.push_back({v, e});
      shape.push_back(e);
      dst.index.push_back({variable(v), {}});
      if (whole % e) a.bounds.push_back({constant(whole - 1) - pl.at[size_t(x)], {}});
    }
    shape.push_back(panels);
    dst.index.push_back({variable(panel), {}});
    a.axes.push_back({panel, panels});
    for (int k : s.c.sides.k) {
      const Var v = f_.k.fresh("k");
      const int64_t e = f_.extent(n, s.core, k);
      pl.at[size_t(k)] = pl.at[size_t(k)] + variable(v);
      a.axes.push_back({v, e});
      shape.push_back(e);
      dst.index.push_back({variable(v), {}});
    }
    a.axes.push_back({lane, width});
    shape.push_back(width);
    dst.index.push_back({variable(lane), {}});
    dst.memory = f_.scratch("o", shape, f_.k.compute);
    Body body = f_.body(n, pl, s.core);
    if (s.domain.size() == 1) body.assume(assumed_of(s, side_axis));
    std::vector<ir::Id> terms;
    for (int x : factors) terms.push_back(s.c.factors[size_t(x)]);
    body.out.values.push_back(body.value(expr::product(f_.g.pool, terms)));
    if (predicate) body.out.when = body.value(*s.c.when);
    for (auto& b : masks(s, body, side_axis)) a.bounds.push_back(b);
    for (int x : s.c.sides.k) {
      const int64_t whole = n.extent(x).value(), e = f_.extent(n, s.core, x);
      if (whole % e) a.bounds.push_back({constant(whole - 1) - pl.at[size_t(x)], {}});
    }
    const int64_t whole = n.extent(side_axis).value();
    // Blocks begin at multiples of a tile, which need not be whole panels: the last one's panels may go on.
    const int64_t tile = f_.extent(n, s.core, side_axis);
    const int64_t last = s.core[size_t(side_axis)] >= 0 && tile > 0 ? (whole - 1) / tile * tile : 0;
    const bool ragged = last + panels * width > whole;
    if (ragged) a.bounds.push_back({constant(whole - 1) - pl.at[size_t(side_axis)], {}});
    bool computed = false;  // from a tile of this kernel: it follows what fills that
    auto from_tile = [&](ir::Id e) {
      for (ir::Id t : expr::subterms(f_.g.pool, e, expr::Op::arg)) computed |= f_.has_tile(n.args[size_t(f_.g.pool[t].whole)].from);
    };
    for (int x : factors) from_tile(s.c.factors[size_t(x)]);
    if (predicate) from_tile(*s.c.when);
    // A tile ends with its block, where the last panel may go on.
    if (computed && tile < panels * width)
      a.bounds.push_back({constant(tile - 1) - variable(panel, width) - variable(lane), {}});
    a.dst = {dst};
    a.fill = {a.bounds.empty() && !predicate ? std::optional<expr::Value>() : expr::real(0)};
    a.body = std::move(body.out);
    vectorize(f_.k, a);
    std::set<int> axes = axes_of_factors(f_.g, n, s.c, factors);
    if (predicate) axes.merge(axes_of(f_.g, n, *s.c.when));
    bool moves = false;
    for (int x = 0; x < n.axis_count(); ++x) moves |= s.axis >= 0 && s.core[size_t(x)] == s.axis && axes.count(x);
    for (auto& b : a.bounds)
      for (auto& [v, c] : b.affine.terms) moves |= s.axis >= 0 && v == f_.block[size_t(s.axis)];
    emit(computed ? s.body : moves ? s.operands : s.pre, std::move(a));
    known = staged_.emplace(key, dst.memory).first;
  }
  // Where the contraction reads it: local coordinates of the blocked side and of k.
  Ref r{known->second, {}, false};
  for (int x : outer) r.index.push_back({at.at[size_t(x)] - base(s.core, x), {}});
  r.index.push_back({variable(at.axes[size_t(at.find(side_axis))].var), {}});
  for (int k : s.c.sides.k) r.index.push_back({at.at[size_t(k)] - base(s.core, k), {}});
  r.index.push_back({variable(at.axes[size_t(at.find(side_axis)) + 1].var), {}});
  return r;
}
// The columns' operand read where it is: one plain read, contiguous along the columns, rows not too far apart.
std::optional<Ref> Emitters::read_in_place(const Site& s, const Place& at) {
  const ir::Comp& n = comp(s.node);
  if (s.c.sides.b.size() != 1) return {};
  const expr::Term& t = f_.g.pool[s.c.factors[size_t(s.c.sides.b[0])]];
  if (t.op != expr::Op::arg) return {};
  const ir::Arg& a = n.args[size_t(t.whole)];
  if (f_.has_tile(a.from) || f_.format(a.from) != f_.k.compute) return {};
  Body probe = f_.body(n, at, s.core);
  if (!masks(s, probe, s.c.sides.n[0]).empty()) return {};
  for (auto& f : a.view)
    if (!f.args.empty()) return {};
  const Ref r = probe.out.refs[size_t(probe.ref(int(t.whole)))];
  if (r.checked) return {};
  const int64_t column = stride_along(f_.k, r, at.axes[size_t(at.find(s.c.sides.n[0])) + 1].var);
  int64_t row = 0, volume = 1;
  for (int k : s.c.sides.k) row = std::max(row, std::abs(stride_along(f_.k, r, at.at[size_t(k)].terms.back().first)));
  for (int k : s.c.sides.k) volume *= n.extent(k).value();
  volume *= n.extent(s.c.sides.n[0]).value();
  if (column != 1 || (row > near_stride && volume > small_operand)) return {};
  // A contraction reads whole panels: a ragged edge needs a copy that is padded with zeros.
  if (n.extent(s.c.sides.n[0]).value() % round_up(f_.extent(n, s.core, s.c.sides.n[0]), f_.choice.columns())) return {};
  for (int k : s.c.sides.k)
    if (n.extent(k).value() % f_.extent(n, s.core, k)) return {};
  for (int x : s.c.outer_n)
    if (n.extent(x).value() % std::max<int64_t>(1, f_.extent(n, s.core, x))) return {};
  return r;
}
// The rows' operand read where it is. Rows a multiple of a page apart fall in one set of the first level, which holds eight.
bool Emitters::rows_in_place(const Site& s) {
  const ir::Comp& n = comp(s.node);
  double panels = double((f_.extent(n, s.core, s.c.sides.n[0]) + f_.choice.columns() - 1) / f_.choice.columns());
  for (int a : s.c.outer_n) panels *= double(f_.extent(n, s.core, a));
  double size = double(n.extent(s.c.sides.m[0]).value());
  for (int a : s.c.outer_m) size *= double(n.extent(a).value());
  for (int a : s.c.sides.k) size *= double(n.extent(a).value());
  const auto apart = stride_of(f_.g, n, s.c, s.c.sides.a, s.c.sides.m[0]), terms = stride_of(f_.g, n, s.c, s.c.sides.a, s.c.sides.k.back());
  return f_.target.workgroup_limit == 1 && apart && (*apart % 1024 || f_.choice.rows < 8) && reads_rows_in_place(panels, size, *terms) &&
         lies(s, s.c.sides.a, s.c.sides.m[0], INT64_MAX);
}
// The columns' operand laid out in panels once, by a kernel of its own, when several blocks of rows read it.
std::optional<Ref> Emitters::copied(const Site& s, const Place& at) {
  const ir::Comp& n = comp(s.node);
  const int column = s.c.sides.n[0];
  const std::set<int> axes = axes_of_factors(f_.g, n, s.c, s.c.sides.b);
  if (f_.choice.pack_b == schedule::Pack::tile) return {};
  // What masks it may move with another axis, whose copies would each be a part of the array: a tile holds that part.
  for (auto& f : assumed_of(s, column))
    for (int x : axes_of(n, f))
      if (!axes.count(x) && x != column && !std::count(s.c.sides.k.begin(), s.c.sides.k.end(), x)) return {};
  bool reread = false;  // by blocks of what the operand does not depend on: of rows, of a batch
  for (int x = 0; x < int(n.points.size()); ++x)
    if (const int c = s.core[size_t(x)]; c >= 0 && !axes.count(x)) reread |= f_.group.extent[size_t(c)] > f_.tile(c);
  if (!reread && f_.choice.pack_b != schedule::Pack::copy) return {};
  for (int x : s.c.sides.b)
    for (ir::Id a : expr::subterms(f_.g.pool, s.c.factors[size_t(x)], expr::Op::arg))
      if (f_.has_tile(n.args[size_t(f_.g.pool[a].whole)].from)) return {};
  const int64_t nr = f_.choice.columns(), whole_blocks = round_up(n.extent(column).value(), round_up(f_.extent(n, s.core, column), nr));
  const int64_t panels = whole_blocks / nr;
  // A block may go on where an axis ends: as many places as blocks of the contraction read.
  auto laid_out = [&](int k) { return round_up(n.extent(k).value(), std::max<int64_t>(1, f_.extent(n, s.core, k))); };
  // A frame of its own: batch axes and panels on the grid.
  plan::Group group;
  Choice choice;
  std::vector<int> core(size_t(n.axis_count()), -1), batch;
  for (int x : axes)
    if (x != column && std::find(s.c.sides.k.begin(), s.c.sides.k.end(), x) == s.c.sides.k.end()) {
      core[size_t(x)] = int(group.extent.size());
      group.extent.push_back(laid_out(x));
      batch.push_back(x);
    }
  group.extent.push_back(panels);
  choice.tile.assign(group.extent.size(), 1);
  // A chip of many lanes is filled by parts of a long panel, too.
  const int longest = *std::max_element(s.c.sides.k.begin(), s.c.sides.k.end(), [&](int x, int y) { return laid_out(x) < laid_out(y); });
  const int64_t part = laid_out(longest) > 0 ? largest_divisor(laid_out(longest), most_of_a_part) : 0;
  const bool cut = f_.target.workgroup_limit > 1 && part >= least_of_a_part && part < laid_out(longest);
  if (cut) {
    core[size_t(longest)] = int(group.extent.size());
    group.extent.push_back(laid_out(longest));
    choice.tile.push_back(part);
  }
  group.role.assign(group.extent.size(), plan::Role::grid);
  Frame frame(f_.g, f_.plan, f_.around, group, choice, f_.target);
  Place pl;
  pl.at.resize(size_t(n.axis_count()));
  for (int x : batch) pl.at[size_t(x)] = variable(frame.block[size_t(core[size_t(x)])]);
  const Var lane = frame.k.fresh("q");
  const Var panel_at = frame.block[batch.size()];
  const Affine first = variable(panel_at, nr);
  pl.at[size_t(column)] = first + variable(lane);
  Apply a;
  kernel::Memory memory;
  Ref dst, src;
  for (int x : batch) {
    const int64_t whole = n.extent(x).value();
    if (laid_out(x) != whole) a.bounds.push_back({constant(whole - 1) - pl.at[size_t(x)], {}});
    memory.shape.push_back(laid_out(x));
    dst.index.push_back({pl.at[size_t(x)], {}});
    src.index.push_back({at.at[size_t(x)], {}});
  }
  memory.shape.push_back(panels);
  dst.index.push_back({variable(panel_at), {}});
  Affine panel = variable(at.axes[size_t(at.find(column))].var);
  if (const int c = s.core[size_t(column)]; c >= 0) {  // blocks are whole panels
    const Var p = f_.k.fresh("p");
    (c == s.axis ? s.body : s.pre).push_back({kernel::Let{p, kernel::Let::floor_div, {base(s.core, column)}, nr, {}}});
    panel = panel + variable(p);
  }
  src.index.push_back({panel, {}});
  for (int k : s.c.sides.k) {
    const Var v = frame.k.fresh("k");
    const bool in_parts = cut && k == longest;
    pl.at[size_t(k)] = in_parts ? variable(frame.block.back()) + variable(v) : variable(v);
    const int64_t whole = n.extent(k).value(), e = laid_out(k);
    a.axes.push_back({v, in_parts ? part : e});
    if (e != whole) a.bounds.push_back({constant(whole - 1) - pl.at[size_t(k)], {}});
    memory.shape.push_back(e);
    dst.index.push_back({pl.at[size_t(k)], {}});
    src.index.push_back({at.at[size_t(k)], {}});
  }
  a.axes.push_back({lane, nr});
  memory.shape.push_back(nr);
  dst.index.push_back({variable(lane), {}});
  src.index.push_back({variable(at.axes[size_t(at.find(column)) + 1].var), {}});
  memory.format = f_.k.compute;
  memory.strides = kernel::row_major(memory.shape);
  Body body = frame.body(n, pl, core);
  if (s.domain.size() == 1) body.assume(assumed_of(s, column));
  std::vector<ir::Id> terms;
  for (int x : s.c.sides.b) terms.push_back(s.c.factors[size_t(x)]);
  body.out.values.push_back(body.value(expr::product(f_.g.pool, terms)));
  for (auto& b : masks(s, body, column)) a.bounds.push_back(b);
  if (n.extent(column).value() != whole_blocks) a.bounds.push_back({constant(n.extent(column).value() - 1) - pl.at[size_t(column)], {}});
  a.fill = {a.bounds.empty() ? std::optional<expr::Value>() : expr::real(0)};
  a.body = std::move(body.out);
  const int id = int(temporaries_.size());
  dst.memory = frame.temporary(id, memory, true);
  temporaries_.push_back(frame.k.memories[size_t(dst.memory)].size() * expr::row(memory.format).bits / 8 + 64);
  a.dst = {dst};
  vectorize(frame.k, a);
  frame.k.body = std::move(frame.head); // what it reads of indices, as the clock of a recurrence
  emit(frame.k.body, std::move(a));
  before_.push_back(finished(frame, "panels of " + std::to_string(nr)));
  src.memory = f_.temporary(id, memory, false);
  return src;
}

// Which operands are 0 where a term is not there while the other holds what lies there: a weight wherever the domain or a
// condition fails, else the side that carries a bound which the other does not. A finite target promises nothing there.
void Emitters::mark_dead(const Site& s, bool weighted, Contract& c) const {
  if (f_.target.values != target::Class::exact) return;
  const ir::Comp& n = comp(s.node);
  if (weighted) {
    const bool asks = std::any_of(n.lift.begin(), n.lift.end(), [&](ir::Id l) {
      return expr::present(f_.g.pool, l).when != expr::yes(f_.g.pool);
    });
    c.dead_a = asks ? Contract::always : n.domain == ir::everywhere() ? Contract::none : Contract::partial;
    return;
  }
  const ir::Conj rows = assumed_of(s, s.c.sides.m[0]), columns = assumed_of(s, s.c.sides.n[0]);
  auto alone = [](const ir::Conj& of, const ir::Conj& other) {
    return std::any_of(of.begin(), of.end(), [&](auto& f) { return std::find(other.begin(), other.end(), f) == other.end(); });
  };
  c.dead_a = s.c.when ? Contract::always : alone(rows, columns) ? Contract::partial : Contract::none;
  c.dead_b = alone(columns, rows) ? Contract::partial : Contract::none;
}

void Emitters::contract(const Site& s, Port dst, const std::optional<Weight>& weight, bool accumulate) {
  const ir::Comp& n = comp(s.node);
  const int row = s.c.sides.m[0], column = s.c.sides.n[0];
  const int64_t nr = f_.choice.columns();
  Place at;
  at.at.resize(size_t(n.axis_count()));
  for (int a = 0; a < n.axis_count(); ++a) at.at[size_t(a)] = base(s.core, a);
  Contract c;
  // In a joint group operands are read where they lie, with no padding; elsewhere in panels.
  const bool joint = !f_.choice.walked.empty();
  const bool columns_lie = joint && lies(s, s.c.sides.b, column, far_rows);
  const bool rows_lie = !weight && (joint ? lies(s, s.c.sides.a, row, far_rows) : rows_in_place(s));
  const bool whole_rows = rows_lie || (joint && weight), whole_columns = columns_lie;
  // A joint group adds where its results lie: no row of the next block is touched.
  const int64_t rows = joint && !whole_rows ? largest_divisor(f_.extent(n, s.core, row), f_.choice.rows) : f_.choice.rows;
  auto block = [&](int axis, int64_t width, bool whole, const std::vector<int>& outer, std::vector<TileAxis>& axes, const std::string& stem) {
    auto add = [&](int of, int64_t extent, int64_t stride) {
      axes.push_back({f_.k.fresh(stem), extent});
      at.at[size_t(of)] = at.at[size_t(of)] + variable(axes.back().var, stride);
      at.axes.push_back(axes.back());
      at.of.push_back(of);
    };
    for (int x : outer) add(x, f_.extent(n, s.core, x), 1);
    if (whole) return add(axis, f_.extent(n, s.core, axis), 1);
    add(axis, (f_.extent(n, s.core, axis) + width - 1) / width, width);
    add(axis, width, 1);
  };
  block(row, rows, whole_rows, s.c.outer_m, c.m, "m");
  block(column, nr, whole_columns, s.c.outer_n, c.n, "n");
  std::vector<int> terms = s.c.sides.k;
  if (joint) {  // one element wide: fixed by the block
    const auto wide = std::stable_partition(terms.begin(), terms.end(), [&](int k) { return f_.extent(n, s.core, k) != 1; });
    terms.erase(std::max(wide, terms.begin() + 1), terms.end());
  }
  // The longest axis of terms is the innermost loop, where the innermost one is short.
  const auto longest = std::max_element(terms.begin(), terms.end(), [&](int x, int y) { return f_.extent(n, s.core, x) < f_.extent(n, s.core, y); });
  if (f_.target.workgroup_limit == 1 && !joint && f_.extent(n, s.core, terms.back()) < 8) std::rotate(longest, longest + 1, terms.end());
  for (int k : terms) {
    const Var v = f_.k.fresh("k");
    const int64_t e = f_.extent(n, s.core, k);
    at.at[size_t(k)] = at.at[size_t(k)] + variable(v);
    c.k.push_back({v, e});
    const int64_t whole = n.extent(k).value();
    if (terms.size() == 1 && whole % e) c.k_end = constant(whole) - base(s.core, k);
  }
  if (weight) {
    c.a = Ref{weight->memory, {}, false};
    for (int x : weight->axes) c.a.index.push_back({at.at[size_t(x)] - base(s.core, x), {}});
  } else if (rows_lie) {
    c.a = read_at(s, s.c.sides.a, at);
  } else {
    c.a = staged(s, s.c.sides.a, row, rows, at);
  }
  auto end = [&](int axis) {  // beyond a ragged last block nothing is read
    const int64_t whole = n.extent(axis).value();
    return whole % f_.extent(n, s.core, axis) ? std::optional(constant(whole) - base(s.core, axis)) : std::nullopt;
  };
  if (whole_rows || joint) c.m_end = end(row);
  if (whole_columns || joint) c.n_end = end(column);
  if (columns_lie) {
    c.b = read_at(s, s.c.sides.b, at);
  } else if (joint) {
    c.b = staged(s, s.c.sides.b, column, nr, at);
  } else if (auto b = read_in_place(s, at)) {
    c.b = *b;
  } else if (auto kept = slab(s, at)) {
    c.b = *kept;
  } else if (auto copy = copied(s, at)) {
    c.b = *copy;
  } else {
    c.b = staged(s, s.c.sides.b, column, nr, at);
  }
  c.dst = result(dst, n, at);
  c.accumulate = accumulate;
  mark_dead(s, weight.has_value(), c);
  c.rows = int(rows);
  c.vectors = f_.choice.vectors;
  s.body.push_back({std::move(c)});
}

}  // namespace tang::lower
