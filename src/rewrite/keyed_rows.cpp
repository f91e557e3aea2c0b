// Keyed rows: a sum over rows and terms of a contraction, each added at a point that a key decides, first
// sums the terms of a row at every point, then the rows. The first has a tile's rows, so that the tile is
// shared with the other sums of its rows.
#include <algorithm>

#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr int64_t most_keys = 64; // each is a number a row in registers

// A point of few places that an equality of the domain decides and the terms do not read.
bool is_keyed(const Graph& g, const Comp& n) {
  if (n.domain.size() != 1 || n.lift.size() != 1 || !axes_fit(n)) return false;
  Dependence depends(g.pool, n);
  const Axes lift = depends.of(n.lift[0]);
  for (size_t t = 0; t < n.points.size(); ++t) {
    if (!n.points[t].is_constant() || n.points[t].value() > most_keys || (lift & bit(int(t)))) continue;
    for (auto& f : n.domain[0])
      if (f.axis(int(t)) && std::find(n.domain[0].begin(), n.domain[0].end(), -1 * f) != n.domain[0].end())
        return true;
  }
  return false;
}

// The first of at least two folds of more than one term: the rows.
std::optional<int> row_fold(const Comp& n) {
  std::vector<int> all;
  for (size_t f = 0; f < n.folds.size(); ++f)
    if (!n.folds[f].is_constant() || n.folds[f].value() != 1) all.push_back(int(n.points.size() + f));
  return all.size() < 2 ? std::nullopt : std::optional(all[0]);
}

// `n` with the fold as its last point.
std::optional<Comp> of_rows(Graph& g, const Comp& n, int fold) {
  Comp out;
  const int points = int(n.points.size());
  out.points = n.points;
  out.points.push_back(n.folds[size_t(fold - points)]);
  for (size_t f = 0; f < n.folds.size(); ++f)
    if (int(f) != fold - points) out.folds.push_back(n.folds[f]);
  Import in(g.pool, n, out, [&](int a) {
    return ir::axis(a < points || a > fold ? a : a == fold ? points : a + 1);
  });
  out.lift = {in.body(n.lift[0])};
  out.domain = in.domain(n.domain);
  out.monoid = n.monoid;
  out.outs = n.outs;
  out.outs[0].axes.push_back(points);
  return in.why().empty() ? std::optional(std::move(out)) : std::nullopt;
}
} // namespace

Graph keyed_rows(const Graph& g) {
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!is_plain_fold(e.to.pool, n, Op::add) || !n.outs[0].view.empty() || !is_keyed(e.to, n)) return {};
    const bool reads = std::any_of(n.args.begin(), n.args.end(),
                                   [&](const Arg& a) { return is_short_contraction(e.to, a.from.node); });
    const auto fold = row_fold(n);
    if (!reads || !fold) return {};
    const auto part = of_rows(e.to, n, *fold);
    if (!part) return {};
    const int points = int(n.points.size());
    Arg read{{e.to.add({*part, e.from.label({id, 0}) + " rows", {}}), 0}, {}};
    for (int a : n.outs[0].axes) read.view.push_back(ir::axis(a));
    read.view.push_back(ir::axis(points));
    Comp join;
    join.points = n.points, join.folds = {n.folds[size_t(*fold - points)]};
    join.monoid = n.monoid, join.outs = n.outs;
    join.lift = {read_leaf(e.to.pool, Type::real, add_read(join, read))};
    n = std::move(join);
    return e.from.label({id, 0});
  });
  return c.what.empty() ? g : ir::canonical(c.graph).graph;
}

} // namespace tang::rewrite
