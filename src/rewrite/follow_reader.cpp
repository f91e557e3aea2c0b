// Follow the reader: a sum that reads short contractions across their axes (a table's gradient, along
// diagonals of the scores) reads contractions at its own axes instead. Where results are stored once,
// nothing that large is then stored for it.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
bool picks_each_once(const std::vector<Form>& view) {
  std::set<int> seen;
  return std::all_of(view.begin(), view.end(),
                     [&](const Form& f) { return f.is_pick() && seen.insert(f.picked()).second; });
}

// The contraction over the axes that the read moves with, 0 where the read is outside of it.
std::optional<Arg> followed(Edit& e, const Comp& reader, const Arg& read) {
  Graph& g = e.to;
  const Comp source = *g[read.from.node].comp();
  const auto shape = g.shape(read.from);
  if (!source.outs[0].view.empty()) return {};
  Comp out;
  std::map<int, int> place;
  std::vector<int> axes;
  for (auto& f : read.view) {
    if (!f.args.empty()) return {};
    for (auto& a : f.axes)
      if (place.emplace(a.first, int(axes.size())).second) axes.push_back(a.first);
  }
  Arg now{{0, 0}, {}};
  out.outs = {{}};
  for (size_t k = 0; k < axes.size(); ++k) {
    out.points.push_back(reader.extent(axes[k]));
    out.outs[0].axes.push_back(int(k));
    now.view.push_back(ir::axis(axes[k]));
  }
  out.folds = source.folds;
  if (!axes_fit(out)) return {};
  const auto moved = [&](const Form& f) {
    return ir::compose(f, [&](int a) { return ir::axis(place.at(a)); });
  };
  const auto at = picked_axes(source, read);
  const int points = int(source.points.size());
  Import in(g.pool, source, out, [&](int a) {
    return a < points ? moved(at.at(a)) : ir::axis(a - points + int(axes.size()));
  });
  ir::Conj inside;
  for (size_t d = 0; d < read.view.size(); ++d) {
    if (read.view[d].is_pick()) continue;
    insert(inside, moved(read.view[d]));
    insert(inside, ir::constant(shape[d] - ir::Extent(1)) - moved(read.view[d]));
  }
  out.lift = {in.body(source.lift[0])};
  out.domain = ir::pruned(ir::intersection(in.domain(source.domain), {inside}), out.extents(), g.symbols);
  out.monoid = source.monoid;
  if (!in.why().empty()) return {};
  const Node& old = g[read.from.node];
  now.from = {g.add({std::move(out), old.name, old.where}), 0};
  return is_short_contraction(g, now.from.node) ? std::optional(now) : std::nullopt;
}

Result<Rewritten> apply_follow_reader(const Graph& g) {
  Edit e(g);
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    if (auto* n = std::get_if<Comp>(&node.what); n && n->monoid && axes_fit(*n)) {
      const std::set<int> indices = index_reads(*n);
      bool changed = false;
      for (size_t k = 0; k < n->args.size(); ++k) {
        const Arg read = n->args[k];
        if (indices.count(int(k)) || picks_each_once(read.view)) continue;
        if (!is_short_contraction(e.to, read.from.node)) continue;
        if (!reads_inside(*n, read, e.to.shape(read.from))) continue;
        if (const auto now = followed(e, *n, read)) n->args[k] = *now, changed = true;
      }
      if (changed) what.push_back(g.label({id, 0}));
    }
    e.put(id, std::move(node));
  }
  if (what.empty()) return Refusal{"every short contraction is read at axes of its reader"};
  return Rewritten{e.finish(), what};
}
} // namespace

Graph follow_reader(const Graph& g) {
  auto r = apply_follow_reader(g);
  return r ? ir::canonical(r->graph).graph : g;
}

Rule follow_reader_rule() {
  return {"follow_reader",
          {"a sum read at a view is the sum whose body has that view",
           "unproved: the view is composed with the reads of the body, as fusion does for maps", Law::exact},
          apply_follow_reader,
          diagonal_witness,
          true};
}

} // namespace tang::rewrite
