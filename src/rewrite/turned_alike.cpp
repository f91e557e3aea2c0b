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

std::optional<Comp> in_order(Graph& g, const Comp& n, const std::vector<int>& order) {
  std::map<int, int> place;
  Comp out;
  ir::Out all;
  for (int a : order) {
    place[a] = int(out.points.size());
    all.axes.push_back(place[a]);
    out.points.push_back(n.extent(a));
  }
  out.outs = {all};
  Import in(g.pool, n, out, [&](int a) { return ir::axis(place.at(a)); });
  out.lift = {in.body(n.lift[0])};
  out.domain = in.domain(n.domain);
  if (!in.why().empty()) return {};
  return out;
}

std::optional<Turned> turned(Graph& g, const Comp& n) {
  if (!n.is_map() || !axes_fit(n) || !n.outs[0].view.empty() || !index_reads(n).empty()) return {};
  if (n.outs[0].axes.size() != n.points.size()) return {};
  const std::vector<int> order = axes_as_read(g.pool, n, point_axes(n), n.lift[0]);
  if (order.size() != n.points.size()) return {};
  auto map = in_order(g, n, order);
  if (!map) return {};
  return Turned{std::move(*map), order};
}

struct Same {
  NodeId as;              // the first of them, which becomes the map that lies as it reads
  std::vector<int> order; // its axis k is which axis here
};

// Nodes that are one value, turned.
std::map<NodeId, Same> alike(const Graph& g, const std::set<NodeId>& kept) {
  Graph all = g; // equal nodes become one
  std::map<NodeId, std::pair<NodeId, std::vector<int>>> first;
  std::map<NodeId, Same> out;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!g[id].comp() || kept.count(id)) continue;
    auto t = turned(all, Comp(*g[id].comp()));
    if (!t) continue;
    // As a node its reads stand in the graph's order, by which the terms are then put in theirs.
    t->map = *all[all.add({std::move(t->map), "", {}})].comp();
    t->map.lift[0] = in_one_order(all.pool, t->map.lift[0]);
    const auto [it, fresh] = first.try_emplace(all.add({std::move(t->map), "", {}}), id, t->order);
    if (fresh) continue;
    out[it->second.first] = {it->second.first, it->second.second};
    out[id] = {it->second.first, t->order};
  }
  return out;
}

std::vector<Form> turned_view(const Comp& of, const std::vector<int>& order, const std::vector<Form>& view) {
  std::map<int, Form> at;
  for (size_t d = 0; d < view.size(); ++d) at[of.outs[0].axes[d]] = view[d];
  std::vector<Form> out;
  for (int a : order) out.push_back(at.at(a));
  return out;
}
} // namespace

Graph turned_alike(const Graph& g) {
  std::set<NodeId> kept; // in the order in which it is read
  for (auto& o : g.outputs) kept.insert(o.port.node);
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].recur())
      for (Port p : ir::sources(g, id)) kept.insert(p.node);
  const std::map<NodeId, Same> same = alike(g, kept);
  if (same.empty()) return g;
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    bool fired = false;
    const Comp& old = *e.from[id].comp();
    for (size_t a = 0; a < n.args.size(); ++a) {
      const NodeId from = old.args[a].from.node;
      const auto it = same.find(from);
      if (it == same.end()) continue;
      n.args[a].view = turned_view(*g[from].comp(), it->second.order, n.args[a].view);
      n.args[a].from = e.at({it->second.as, 0});
      fired = true;
    }
    if (const auto it = same.find(id); it != same.end() && it->second.as == id)
      n = *in_order(e.to, Comp(n), it->second.order), fired = true;
    return fired ? std::optional(g.label({id, 0})) : std::nullopt;
  });
  return ir::canonical(c.graph).graph;
}

} // namespace tang::rewrite
