// Part sums: few results over many terms are summed in parts, which are nodes of their own, so that every
// worker of the target has some.
#include <algorithm>

#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr int64_t block_values = 128 * 64; // results that one worker sums at once beside scores of its own
constexpr int64_t run = 32;                // neighbouring results that lanes side by side sum
constexpr int64_t least_terms = 128;       // of a part
constexpr int64_t least_rows = 32;         // of a part of a column
constexpr int64_t blocks_a_worker = 8;     // of columns: their lanes wait for memory
constexpr int64_t most_heads = 16, most_parts = 64;

struct Parts {
  int axis; // of the folds
  int64_t block;
};

bool is_sum(const Pool& p, const Comp& n) {
  return is_plain_fold(p, n, Op::add) && n.monoid->identity[0].type == Type::real && axes_fit(n);
}

std::vector<int> long_folds(const Comp& n) {
  std::vector<int> out;
  for (size_t f = 0; f < n.folds.size(); ++f)
    if (!(n.folds[f] == ir::Extent(1))) out.push_back(int(f));
  return out;
}

double values(const Graph& g, const std::vector<ir::Extent>& extents) {
  return nominal_size(extents, g.symbols);
}

// A sum over several axes of what is computed from scores: a short one of them, such as the heads that share
// keys, is that of the parts.
std::optional<Parts> over_scores(const Graph& g, const Comp& n, const std::vector<int>& folds,
                                 int64_t workers) {
  const bool scores = std::any_of(n.args.begin(), n.args.end(), [&](const Arg& a) {
    return g[a.from.node].comp() && g[a.from.node].comp()->monoid && is_short_contraction(g, a.from.node);
  });
  if (!scores || folds.size() < 2 || values(g, n.points) >= double(workers * block_values)) return {};
  int axis = folds[0];
  for (int f : folds)
    if (values(g, {n.folds[size_t(f)]}) < values(g, {n.folds[size_t(axis)]})) axis = f;
  const ir::Extent& parts = n.folds[size_t(axis)];
  if (!parts.is_constant() || parts.value() > most_heads) return {};
  if (values(g, n.folds) < double(parts.value() * least_terms)) return {};
  return Parts{axis, 1};
}

// A sum of columns: its terms lie apart, its results next to each other.
std::optional<Parts> over_rows(const Graph& g, const Comp& n, const std::vector<int>& folds,
                               int64_t workers) {
  if (folds.size() != 1 || n.domain != ir::everywhere()) return {};
  if (!n.folds[size_t(folds[0])].is_constant()) return {};
  const int fold = int(n.points.size()) + folds[0];
  bool columns = false;
  for (auto& a : n.args) {
    auto moves = [&](const Form& f) { // with the result
      return std::any_of(f.axes.begin(), f.axes.end(), [&](auto& x) {
        return size_t(x.first) < n.points.size() && !(n.points[size_t(x.first)] == ir::Extent(1));
      });
    };
    if (std::none_of(a.view.begin(), a.view.end(), moves)) continue;
    if (a.view.back().axis(fold)) return {};
    columns |= moves(a.view.back());
  }
  const double blocks = values(g, n.points) / double(run);
  const int64_t terms = n.folds[size_t(folds[0])].value();
  if (!columns || blocks >= double(workers)) return {};
  int64_t parts = 1;
  while (parts < most_parts && blocks * double(parts) < double(blocks_a_worker * workers) &&
         terms % (2 * parts) == 0 && terms / (2 * parts) >= least_rows)
    parts *= 2;
  if (parts < 2) return {};
  return Parts{folds[0], terms / parts};
}
} // namespace

std::map<NodeId, NodeId> parts(const Graph& g) {
  std::map<NodeId, NodeId> out;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* n = g[id].comp();
    if (!n || !is_sum(g.pool, *n) || n->args.size() != 1 || g.pool[n->lift[0]].op != Op::arg) continue;
    const NodeId from = n->args[0].from.node;
    if (const Comp* source = g[from].comp(); source && is_sum(g.pool, *source)) out.emplace(from, id);
  }
  return out;
}

Graph part_sums(const Graph& g, int64_t workers) {
  Graph out = g;
  for (NodeId id = NodeId(g.nodes.size()); id-- > 0;) {
    const Comp* n = out[id].comp();
    if (!n || !is_sum(out.pool, *n)) continue;
    const std::vector<int> folds = long_folds(*n);
    auto s = over_scores(out, *n, folds, workers);
    if (!s) s = over_rows(out, *n, folds, workers);
    if (!s) continue;
    if (auto r = split_fold(out, id, s->axis, s->block)) out = std::move(r->graph);
  }
  return out;
}

} // namespace tang::rewrite
