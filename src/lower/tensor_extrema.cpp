#include "tang/lower/tensor_lowerer.hpp"

#include <algorithm>

// What a kernel before the one of matrix instructions finds out about the integers that its masks read: their
// extrema over blocks of rows, and the part of the loop in which a block of rows has points.
namespace tang::lower {

using expr::Op;
using expr::Type;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

// A kernel over blocks of rows, and where its results are.
struct TensorLowerer::Ahead {
  plan::Group group; // single points of the axes in use, blocks of rows last
  Choice choice;
  std::vector<int> own; // the group's axis of each axis of the node, or -1
  std::optional<Frame> frame;
  Place at;                          // the first row of a block
  std::vector<Coordinate> to, from;  // a result's element, here and for the reader
  kernel::Var folded = -1;
  Fold fold = {};

  // One more result: an integer, joined from `start` on.
  void keep(expr::Id value, Op join, int64_t start) {
    kernel::Pool& p = *frame->k.pool;
    const int64_t c = int64_t(fold.body.values.size());
    auto side = [&](int64_t s) { return p.leaf(Op::var, Type::index, 2 * c + s); };
    fold.body.values.push_back(value);
    fold.identity.push_back(expr::whole(start));
    fold.combine.push_back(p.make(join, {side(0), side(1)}));
  }
};

// `along` is what each block of rows folds: the rows themselves, or another axis of the node.
bool TensorLowerer::begin(Ahead& a, const ir::Comp& n, const std::vector<int>& core, const std::set<int>& used, int row,
                          kernel::TileAxis along) {
  const int64_t tile = f_.tile(tensor_.rows);
  a.own.assign(size_t(n.axis_count()), -1);
  auto use = [&](int x, int64_t extent, const Affine& here) {
    if (x >= 0) a.own[size_t(x)] = int(a.group.extent.size());
    a.group.extent.push_back(extent);
    a.from.push_back({here, {}});
  };
  for (int x : used) {
    const int c = core[size_t(x)];
    if (x == row) continue;
    if (c < 0 || group_.role[size_t(c)] != plan::Role::grid || f_.tile(c) != 1) return false;
    use(x, n.extent(x).value(), variable(f_.block[size_t(c)]));
  }
  if (row >= 0) {
    const kernel::Var block = f_.k.fresh("u");
    lets_.push_back({kernel::Let{block, kernel::Let::floor_div, {variable(f_.block[size_t(tensor_.rows)])}, tile, {}}});
    use(row, (group_.extent[size_t(tensor_.rows)] + tile - 1) / tile, variable(block));
  }
  if (a.group.extent.empty()) use(-1, 1, constant(0));
  a.group.role.assign(a.group.extent.size(), plan::Role::grid);
  a.choice.tile.assign(a.group.extent.size(), 1);
  a.frame.emplace(g_, plan_, around_, a.group, a.choice, target_);
  a.at.at.resize(size_t(n.axis_count()));
  for (int x = 0; x < n.axis_count(); ++x)
    if (a.own[size_t(x)] >= 0) a.at.at[size_t(x)] = variable(a.frame->block[size_t(a.own[size_t(x)])]);
  if (row >= 0) a.at.at[size_t(row)] = tile * a.at.at[size_t(row)];
  for (kernel::Var b : a.frame->block) a.to.push_back({variable(b), {}});
  a.folded = a.frame->k.fresh("r");
  a.fold.folded = {{a.folded, along.extent}};
  return true;
}

// The results' values for the reader.
std::vector<Affine> TensorLowerer::end(Ahead& a, const std::string& what) {
  kernel::Memory memory;
  memory.shape = a.group.extent;
  memory.strides = kernel::row_major(memory.shape);
  memory.format = kernel::Format::i64;
  std::vector<Affine> out;
  for (size_t c = 0; c < a.fold.body.values.size(); ++c) {
    const int id = int(temporaries_.size());
    a.fold.dst.push_back({a.frame->temporary(id, memory, true), a.to, false});
    temporaries_.push_back(memory.size() * 8 + 64);
    const kernel::Var v = f_.k.fresh("u");
    lets_.push_back({kernel::Let{v, kernel::Let::load, {}, 1, {f_.temporary(id, memory, false), a.from, false}}});
    out.push_back(variable(v));
  }
  emit(a.frame->k.body, std::move(a.fold));
  before_.push_back(finished(*a.frame, what));
  return out;
}

// The integers of a row that the domain reads at the places of this one: one kernel folds all of them.
std::vector<int> TensorLowerer::read_alike(const ir::Comp& n, int arg) const {
  std::vector<int> out{arg};
  for (auto& piece : domain_)
    for (auto& bound : piece)
      for (auto& [u, k] : bound.args)
        if (n.args[size_t(u)].view == n.args[size_t(arg)].view && !f_.has_tile(n.args[size_t(u)].from) &&
            !std::count(out.begin(), out.end(), u))
          out.push_back(u);
  return out;
}

// An integer a row, folded over each block of rows.
std::optional<std::pair<Affine, Affine>> TensorLowerer::extrema(const ir::Comp& n,
                                                                const std::vector<int>& core, int arg) {
  if (auto it = extrema_.find(arg); it != extrema_.end()) return it->second;
  const ir::Arg& a = n.args[size_t(arg)];
  const int64_t tile = f_.tile(tensor_.rows), rows = group_.extent[size_t(tensor_.rows)];
  int row = -1;
  std::set<int> used;
  for (auto& v : a.view) {
    if (!v.args.empty()) return {};
    for (auto& [x, k] : v.axes) {
      used.insert(x);
      if (core[size_t(x)] == tensor_.rows) row = x;
    }
  }
  Ahead ahead;
  if (row < 0 || f_.has_tile(a.from) || !begin(ahead, n, core, used, row, {-1, tile})) return {};
  Affine& at = ahead.at.at[size_t(row)];
  at = at + variable(ahead.folded);
  if (rows % tile) ahead.fold.limits.push_back({constant(rows - 1) - at, {}});
  Body body = ahead.frame->body(n, ahead.at, ahead.own);
  const std::vector<int> all = read_alike(n, arg);
  for (size_t i = 0; i < all.size(); ++i) {
    const int r = body.ref(all[i]);
    ahead.fold.body.refs.push_back(body.out.refs[size_t(r)]);
    const expr::Id read = ahead.frame->k.pool->leaf(Op::arg, Type::index, int64_t(i));
    ahead.keep(read, Op::min, INT64_MAX), ahead.keep(read, Op::max, INT64_MIN);
  }
  const auto v = end(ahead, "extrema of blocks of " + std::to_string(tile) + " rows");
  for (size_t i = 0; i < all.size(); ++i) extrema_.emplace(all[i], std::pair(v[2 * i], v[2 * i + 1]));
  return extrema_.at(arg);
}

// Points of the loop at which some row of a block may live, and all rows do: the first and the last, and how many
// of the latter, which are a run only if none is missing between.
std::optional<Run> TensorLowerer::runs(const ir::Comp& n, const std::vector<int>& core,
                                       const std::vector<const ir::Form*>& bounds) {
  const int64_t tile = f_.tile(tensor_.rows), whole = group_.extent[size_t(tensor_.loop)];
  int row = -1, loop = -1;
  std::set<int> used;
  auto note = [&](const ir::Form& f) {
    for (auto& [x, k] : f.axes)
      if (core[size_t(x)] == tensor_.rows) row = x;
      else if (core[size_t(x)] == tensor_.loop) loop = x;
      else used.insert(x);
  };
  for (auto* bound : bounds)
    for (auto& [u, k] : bound->args)
      for (auto& v : n.args[size_t(u)].view) {
        if (!v.args.empty() || f_.has_tile(n.args[size_t(u)].from)) return {};
        note(v);
      }
  if (row >= 0) return {}; // it reads other integers for each row
  for (auto* bound : bounds) note(*bound);
  Ahead ahead;
  if (loop < 0 || !begin(ahead, n, core, used, row, {-1, whole})) return {};
  ahead.at.at[size_t(loop)] = variable(ahead.folded);
  Body body = ahead.frame->body(n, ahead.at, ahead.own);
  kernel::Bounds some, all;
  for (auto* bound : bounds) {
    const int64_t span = row < 0 ? 0 : bound->axis(row) * (tile - 1);
    for (auto [to, more] : {std::pair(&some, std::max<int64_t>(span, 0)), std::pair(&all, std::min<int64_t>(span, 0))}) {
      to->push_back(body.coordinate(*bound));
      to->back().affine = to->back().affine + constant(more);
    }
  }
  kernel::Pool& p = *ahead.frame->k.pool;
  ahead.fold.body.refs = body.out.refs;
  ahead.fold.body.guards = {{some}, {all}};
  auto number = [&](int64_t v) { return p.literal(expr::whole(v)); };
  const expr::Id at = p.leaf(Op::coord, Type::index, ahead.folded), next = p.make(Op::add, {at, number(1)});
  auto keep_where = [&](int guard, expr::Id value, Op join, int64_t start) {
    ahead.keep(p.make(Op::select, {p.leaf(Op::holds, Type::boolean, guard), value, number(start)}), join, start);
  };
  for (int guard : {0, 1}) keep_where(guard, at, Op::min, whole), keep_where(guard, next, Op::max, 0);
  keep_where(1, number(1), Op::add, 0);
  const auto v = end(ahead, "runs of blocks of " + std::to_string(tile) + " rows");
  auto let = [&](kernel::Let::Kind kind, const Affine& a, int64_t b) {
    lets_.push_back({kernel::Let{f_.k.fresh("u"), kind, {a, constant(b)}, 1, {}}});
    return variable(std::get<kernel::Let>(lets_.back().node).var);
  };
  const Affine missing = let(kernel::Let::min, let(kernel::Let::max, v[3] - v[2] - v[4], 0), 1);
  return Run{v[0], v[1], v[2], v[3] - whole * missing};
}

} // namespace tang::lower
