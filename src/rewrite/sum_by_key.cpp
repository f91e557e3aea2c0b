// Sum by key: a sum that reads short contractions across their axes, at a coordinate which its own point
// decides, folds that coordinate as well and keeps the terms whose point it is. The contraction is then read
// where others read it, so that a tile evaluates it once for all of them and no array of it is stored.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// coordinate = sign point + rest, of a read that no other coordinate of it needs the point for.
struct Site {
  int point;
  int64_t sign;
  Form coordinate;
  ir::Extent extent;
};

bool picks(const std::vector<Form>& view) {
  std::set<int> seen;
  return std::all_of(view.begin(), view.end(),
                     [&](const Form& f) { return f.is_pick() && seen.insert(f.picked()).second; });
}

std::optional<Site> site_of(const Comp& n, const Arg& a, const std::vector<ir::Extent>& shape) {
  for (size_t d = 0; d < a.view.size(); ++d) {
    const Form& f = a.view[d];
    if (f.is_pick() || !f.args.empty()) continue;
    for (auto& [x, k] : f.axes) {
      if (size_t(x) >= n.points.size() || (k != 1 && k != -1)) continue;
      const bool alone = std::none_of(a.view.begin(), a.view.end(),
                                      [&, axis = x](const Form& o) { return &o != &f && o.axis(axis) != 0; });
      if (alone) return Site{x, k, f, shape[d]};
    }
  }
  return {};
}

// The sum with one more fold axis, that of the coordinate; nothing where the point is still needed inside a
// term.
std::optional<Comp> by_key(Graph& g, const Comp& n, const Site& s) {
  Comp out;
  out.points = n.points;
  out.folds = n.folds;
  out.folds.push_back(s.extent);
  if (!axes_fit(out)) return {};
  const int fold = n.axis_count();
  const Form rest = s.coordinate - ir::axis(s.point, s.sign);
  const Form point = s.sign * (ir::axis(fold) - rest);
  Import in(g.pool, n, out, [&](int x) { return x == s.point ? point : ir::axis(x); });
  out.lift = {in.body(n.lift[0])};
  ir::Conj key;
  insert(key, ir::axis(s.point) - point);
  insert(key, point - ir::axis(s.point));
  out.domain = ir::pruned(ir::intersection(in.domain(n.domain), {key}), out.extents(), g.symbols);
  out.monoid = n.monoid;
  out.outs = n.outs;
  if (!in.why().empty() || out.domain.size() != 1) return {};
  Dependence depends(g.pool, out);
  if (depends.of(out.lift[0]) & bit(s.point)) return {};
  for (auto& a : out.args)
    if (is_short_contraction(g, a.from.node) && !picks(a.view)) return {};
  return out;
}

Result<Rewritten> apply_sum_by_key(const Graph& g) {
  std::set<NodeId> aligned; // contractions that some fold reads at picked axes
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (const Comp* c = g[id].comp(); c && c->monoid)
      for (auto& a : c->args)
        if (picks(a.view) && is_short_contraction(g, a.from.node)) aligned.insert(a.from.node);
  if (aligned.empty()) return Refusal{"no fold reads a short contraction"};
  Edit e(g);
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    if (auto* n = std::get_if<Comp>(&node.what); n && is_plain_fold(e.to.pool, *n, Op::add) &&
                                                 !n->folds.empty() && n->outs[0].view.empty() && axes_fit(*n))
      for (size_t k = 0; k < n->args.size(); ++k) {
        const NodeId from = g[id].comp()->args[k].from.node;
        if (!aligned.count(from)) continue;
        const auto shape = e.to.shape(n->args[k].from);
        const auto s = site_of(*n, n->args[k], shape);
        // A term that reads outside, in a branch that does not count, is a term all the same.
        if (!s || !reads_inside(*n, n->args[k], shape)) continue;
        if (auto next = by_key(e.to, *n, *s)) {
          *n = std::move(*next);
          what.push_back(g.label({id, 0}));
        }
        break;
      }
    e.put(id, std::move(node));
  }
  if (what.empty()) return Refusal{"every short contraction is read at axes of its reader"};
  return Rewritten{e.finish(), what};
}

} // namespace

Graph diagonal_witness() {
  ir::Builder b;
  auto q = b.input("q", {5, 2}), k = b.input("k", {5, 2}), v = b.input("v", {5, 3});
  auto [i, j, d, c] = ir::axes<"i j d c">();
  const ir::Axis t = ir::axis("t", ir::Extent(9));
  const auto score = sum(d, q(i, d) * k(j, d));
  b.output(ir::map({i, c}, sum(j, score * v(j, c))), "rows");
  // table[t]: the scores at distance t - 4.
  const ir::Index far = ir::Index(i) + ir::Index(4) - ir::Index(t);
  const auto inside = ir::Index(0) <= far && far < ir::Index(5);
  const auto scores = ir::map({i, j}, score, "scores");
  b.output(ir::map({t}, sum(i, masked(inside, square(scores(i, far))))), "table");
  return ir::canonical(fuse().apply(b.graph())->graph).graph; // the contraction itself is read
}

Graph sum_by_key(const Graph& g) {
  auto r = apply_sum_by_key(g);
  return r ? std::move(r->graph) : g;
}

Graph for_planning(const Graph& g, bool adds) {
  return expose_support(adds ? ir::canonical(sum_by_key(g)).graph : follow_reader(g));
}

Rule sum_by_key_rule() {
  return {"sum_by_key",
          {"sum_i f(i, g(i, t)) = sum_i sum_j [t is the one whose g(i, t) is j] f(i, j)",
           "unproved: one term of the sum over j is left", Law::algebraic},
          apply_sum_by_key,
          diagonal_witness,
          true};
}

} // namespace tang::rewrite
