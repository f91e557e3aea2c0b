// Expose support: what a stored map needs so that its fill is never observed.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
Result<Rewritten> apply_expose_support(const Graph& g) {
  Edit e(g);
  Pool& p = e.to.pool;
  std::map<NodeId, NodeId> alive_map; // new map with a predicate -> the bool map beside it
  std::set<NodeId> outputs;
  for (auto& o : g.outputs) outputs.insert(o.port.node);
  std::vector<char> is_read(g.nodes.size(), 0);
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (e.live[id])
      for (Port s : ir::sources(g, id)) is_read[s.node] = 1;
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    auto* n = std::get_if<Comp>(&node.what);
    if (!n) {
      e.put(id, std::move(node));
      continue;
    }
    bool changed = false;
    const std::set<int> indices = index_reads(*n);
    for (int a = 0, count = int(n->args.size()); a < count; ++a) {
      const Arg read = n->args[size_t(a)];
      const Comp* at = e.to[read.from.node].comp();
      if (!at || !at->is_map() || !at->outs[0].view.empty() || indices.count(a)) continue;
      const Comp m = *at;
      std::vector<Id> needs;
      if (m.domain != ir::everywhere()) {
        const auto picked = picked_axes(m, read);
        Import in(p, m, *n, [&](int x) { return picked.at(x); });
        const Domain d = ir::pruned(in.domain(m.domain), n->extents(), e.to.symbols);
        if (d != ir::everywhere() && !ir::implies(n->domain, d)) needs.push_back(in.guard(d));
      }
      if (auto it = alive_map.find(read.from.node); it != alive_map.end())
        needs.push_back(read_leaf(p, Type::boolean, add_read(*n, {{it->second, 0}, read.view})));
      if (needs.empty()) continue;
      const Id leaf = read_leaf(p, p[m.lift[0]].type, a),
               guarded = p.make(Op::only, {expr::conjunction(p, needs), leaf});
      // A use that already stands under this very guard stays as it is, and so does a term that does.
      const Id mark = p.leaf(Op::var, p[leaf].type, 1 << 20);
      for (Id& l : n->lift) {
        const auto parts = expr::conjuncts(p, expr::present(p, l).when);
        if (std::all_of(needs.begin(), needs.end(),
                        [&](Id x) { return std::find(parts.begin(), parts.end(), x) != parts.end(); }))
          continue;
        const Id next = expr::substitute(
            p, expr::substitute(p, expr::substitute(p, l, {{guarded, mark}}), {{leaf, guarded}}),
            {{mark, guarded}});
        changed |= next != l;
        l = next;
      }
    }
    if (changed) {
      tighten(e.to, *n);
      what.push_back(g.label({id, 0}));
    }
    // The map itself: its predicate becomes a bool map, its body total inside its domain. An output keeps its
    // absence.
    std::optional<Node> beside;
    if (n->is_map() && n->outs[0].view.empty() && is_read[id]) {
      const expr::Present x = expr::present(p, n->lift[0]);
      if (x.when != expr::yes(p)) {
        Comp live = *n;
        live.lift = {x.when};
        beside = Node{live, node.name.empty() ? "exists" : node.name + " exists", node.where};
        const Id fill = p.number(0, p[x.value].type);
        if (!outputs.count(id)) {
          n->lift[0] = p.make(Op::or_else, {p.make(Op::only, {x.when, x.value}), fill});
          what.push_back(g.label({id, 0}) + " and where it exists");
        }
      }
    }
    const NodeId now = e.put(id, std::move(node));
    if (beside) alive_map[now] = e.to.add(std::move(*beside));
  }
  if (what.empty()) return Refusal{"every read of a map repeats its support"};
  return Rewritten{e.finish(), what};
}

Graph expose_support_witness() {
  ir::Builder b;
  auto x = b.input("x", {4, 4});
  auto at = b.input("at", {4}, ir::Format::i32);
  auto [i, j] = ir::axes<"i j">();
  auto slot = at(j);
  auto picked = ir::map({i, j}, masked(slot >= ir::index_literal(b, 0), x(i, slot)), "picked");
  b.output(ir::map({i}, max(j, picked(i, j))), "top");
  return b.graph();
}
} // namespace

Graph expose_support(const Graph& g) {
  auto r = apply_expose_support(g);
  return r ? std::move(r->graph) : g;
}

Rule expose_support_rule() {
  return {"expose_support",
          {"a read of a stored map that repeats the map's support never sees the fill",
           "expose_support_sound", Law::exact},
          apply_expose_support,
          expose_support_witness,
          true};
}

} // namespace tang::rewrite
