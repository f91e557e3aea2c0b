// Split: a fold over an axis is the fold of the folds over its blocks (split-K, split-KV, two-level
// reductions).
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

Result<Rewritten> split_fold(const Graph& g, NodeId id, int fold_axis, int64_t block) {
  const Comp* c = id < g.nodes.size() ? g[id].comp() : nullptr;
  if (!c || c->is_map()) return Refusal{"only a fold can be split"};
  if (fold_axis < 0 || size_t(fold_axis) >= c->folds.size())
    return Refusal{g.label({id, 0}) + " has no fold axis " + std::to_string(fold_axis)};
  if (block < 1) return Refusal{"a block holds at least one term"};
  if (!c->monoid->commutative && fold_axis != 0)
    return Refusal{"the order of the terms would change, and the combine does not commute"};
  Edit e(g);
  for (NodeId k = 0; k < g.nodes.size(); ++k) {
    if (!e.live[k]) continue;
    if (k != id) {
      e.copy(k);
      continue;
    }
    const Node node = e.node(k);
    const Comp n = *node.comp();
    const ir::Extent& extent = n.folds[size_t(fold_axis)];
    const int points = int(n.points.size()), axis = points + fold_axis;
    const bool gone = block == 1 && n.folds.size() > 1; // a term a part: the axis is the parts'
    Comp part;
    part.points = {ceil_div(extent, block)};
    part.points.insert(part.points.end(), n.points.begin(), n.points.end());
    part.folds = n.folds;
    if (gone)
      part.folds.erase(part.folds.begin() + fold_axis);
    else
      part.folds[size_t(fold_axis)] = ir::Extent(block);
    const Form whole = gone ? ir::axis(0) : ir::axis(0, block) + ir::axis(axis + 1);
    Import in(e.to.pool, n, part,
              [&](int a) { return a == axis ? whole : ir::axis(gone && a > axis ? a : a + 1); });
    for (Id l : n.lift) part.lift.push_back(in.body(l));
    if (!in.why().empty()) return Refusal{in.why()};
    const Form inside = ir::constant(extent - ir::Extent(1)) - whole;
    part.domain = ir::pruned(ir::intersection(in.domain(n.domain), {{inside}}), part.extents(), e.to.symbols);
    if (extent.is_constant() && extent.value() % block == 0)
      part.domain = ir::pruned(in.domain(n.domain), part.extents(), e.to.symbols);
    part.monoid = n.monoid;
    for (auto& o : n.outs) {
      ir::Out out;
      out.axes = {0};
      for (int a : o.axes) out.axes.push_back(a + 1);
      part.outs.push_back(out);
    }
    const NodeId partial =
        e.to.add({part, node.name.empty() ? "partial" : node.name + " partial", node.where});
    Comp join;
    join.points = n.points;
    join.folds = {part.points[0]};
    join.monoid = n.monoid;
    join.outs = n.outs;
    for (uint32_t p = 0; p < n.lift.size(); ++p) {
      Arg a{{partial, p}, {ir::axis(points)}};
      for (int x : n.outs[p].axes) a.view.push_back(ir::axis(x));
      join.lift.push_back(read_leaf(e.to.pool, e.to.pool[n.lift[p]].type, add_read(join, a)));
    }
    e.put(k, {join, node.name, node.where});
  }
  return Rewritten{e.finish(), {g.label({id, 0}) + " in blocks of " + std::to_string(block)}};
}

Result<Rewritten> split_fold_in(const Graph& g, NodeId id, int fold_axis, int64_t parts) {
  const Comp* c = id < g.nodes.size() ? g[id].comp() : nullptr;
  if (!c || fold_axis < 0 || size_t(fold_axis) >= c->folds.size() || parts < 1)
    return Refusal{"no such fold axis"};
  const ir::Extent& e = c->folds[size_t(fold_axis)];
  if (!e.is_constant()) return Refusal{"the axis has the symbolic extent " + e.text() + ": give a block"};
  return split_fold(g, id, fold_axis, std::max<int64_t>(1, (e.value() + parts - 1) / parts));
}

namespace {
Graph split_fold_witness() {
  ir::Builder b;
  auto x = b.input("x", {3, 7}), w = b.input("w", {7, 2});
  auto [i, k, n] = ir::axes<"i k n">();
  b.output(ir::map({i, n}, sum(k, masked(k <= ir::Index(i) + 3, x(i, k) * w(k, n)))), "y");
  return b.graph();
}
} // namespace

Rule split_fold_rule() {
  auto apply = [](const Graph& g) -> Result<Rewritten> {
    for (NodeId id = NodeId(g.nodes.size()); id-- > 0;)
      if (auto* c = g[id].comp(); c && c->monoid && !c->folds.empty()) return split_fold(g, id, 0, 3);
    return Refusal{"no fold"};
  };
  return {"split_fold",
          {"an associative fold is the fold of the folds of its blocks; the tail is in the domain",
           "split_ragged", Law::algebraic},
          apply,
          split_fold_witness,
          true};
}

} // namespace tang::rewrite
