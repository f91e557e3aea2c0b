// Turned alike: maps that are one value with their axes in another order are one map, which is stored once.
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// A map with its axes in the order of what it reads; `order`: this axis of it was which of the map.
struct Turned {
  Comp map;
  std::vector<int> order;
};

std::optional<Turned> turned(Graph& g, const Comp& n) {
  if (!n.is_map() || !axes_fit(n) || !n.outs[0].view.empty() || !index_reads(n).empty()) return {};
  if (n.outs[0].axes.size() != n.points.size()) return {};
  Turned out;
  out.order = axes_as_read(g.pool, n, point_axes(n), n.lift[0]);
  if (out.order.size() != n.points.size()) return {};
  std::map<int, int> place;
  ir::Out all;
  for (int a : out.order) {
    place[a] = int(out.map.points.size());
    all.axes.push_back(place[a]);
    out.map.points.push_back(n.extent(a));
  }
  out.map.outs = {all};
  Import in(g.pool, n, out.map, [&](int a) { return ir::axis(place.at(a)); });
  out.map.lift = {in.body(n.lift[0])};
  out.map.domain = in.domain(n.domain);
  if (!in.why().empty()) return {};
  return out;
}

struct Same {
  NodeId as;                  // the first of them
  std::vector<int> mine, its; // the same axes, one by one
};

// Nodes that another one before them is, turned.
std::map<NodeId, Same> alike(const Graph& g) {
  Graph all = g; // equal nodes become one
  std::map<NodeId, std::pair<NodeId, std::vector<int>>> first;
  std::map<NodeId, Same> out;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!g[id].comp()) continue;
    auto t = turned(all, Comp(*g[id].comp()));
    if (!t) continue;
    // As a node its reads stand in the graph's order, by which the terms are then put in theirs.
    t->map = *all[all.add({std::move(t->map), "", {}})].comp();
    t->map.lift[0] = in_one_order(all.pool, t->map.lift[0]);
    const auto [it, fresh] = first.try_emplace(all.add({std::move(t->map), "", {}}), id, t->order);
    if (!fresh) out[id] = {it->second.first, t->order, it->second.second};
  }
  return out;
}

std::vector<Form> turned_view(const Comp& mine, const Comp& its, const Same& same,
                              const std::vector<Form>& view) {
  std::map<int, Form> at; // axis of the other
  for (size_t d = 0; d < view.size(); ++d)
    for (size_t k = 0; k < same.mine.size(); ++k)
      if (same.mine[k] == mine.outs[0].axes[d]) at[same.its[k]] = view[d];
  std::vector<Form> out;
  for (int a : its.outs[0].axes) out.push_back(at.at(a));
  return out;
}
} // namespace

Graph turned_alike(const Graph& g) {
  std::map<NodeId, Same> same = alike(g);
  for (auto& o : g.outputs) same.erase(o.port.node);
  if (same.empty()) return g;
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    bool fired = false;
    for (size_t a = 0; a < n.args.size(); ++a) {
      const Comp& old = *e.from[id].comp();
      const auto it = same.find(old.args[a].from.node);
      if (it == same.end()) continue;
      const Same& s = it->second;
      n.args[a].view = turned_view(*g[it->first].comp(), *g[s.as].comp(), s, n.args[a].view);
      n.args[a].from = e.at({s.as, 0});
      fired = true;
    }
    return fired ? std::optional(g.label({id, 0})) : std::nullopt;
  });
  return ir::canonical(c.graph).graph;
}

} // namespace tang::rewrite
