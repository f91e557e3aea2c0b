#include "tang/plan/plan.hpp"

#include <algorithm>

#include "tang/plan/planner.hpp"

namespace tang::plan {

const Buffer* Plan::buffer(Port q) const {
  for (auto& b : buffers)
    if (b.of == q) return &b;
  return nullptr;
}

Planner::Planner(Plan& p, ir::Pool& pool, const schedule::Schedule& s, const target::Target& t,
                 std::map<NodeId, NodeId> heir, bool body)
    : p_(p), pool_(pool), g_(*p.graph), s_(s), t_(t), heir_(std::move(heir)), body_(body) {
  const size_t n = g_.nodes.size();
  std::vector<char> needed(n, 0);
  std::vector<int> depth(n, 0);
  output_.assign(n, 0);
  for (auto& o : g_.outputs) needed[o.port.node] = output_[o.port.node] = 1;
  for (NodeId id = NodeId(n); id-- > 0;)
    if (needed[id])
      for (Port q : sources(g_, id)) needed[q.node] = 1;
  for (NodeId id = 0; id < n; ++id) {
    for (Port q : sources(g_, id)) depth[id] = std::max(depth[id], depth[q.node] + 1);
    if (needed[id] && !g_[id].input()) order_.push_back(id);
  }
  std::sort(order_.begin(), order_.end(), [&](NodeId a, NodeId b) {
    if (depth[a] != depth[b]) return depth[a] < depth[b];
    return g_[a].hash != g_[b].hash ? g_[a].hash < g_[b].hash : a < b;
  });
  rank_.assign(n, -1);
  readers_.resize(n);
  for (size_t k = 0; k < order_.size(); ++k) {
    const NodeId id = order_[k];
    rank_[id] = int(k);
    for (Port q : sources(g_, id))
      if (readers_[q.node].empty() || readers_[q.node].back() != id) readers_[q.node].push_back(id);
  }
  stored_.assign(n, 0);
  for (NodeId id : order_) {
    const schedule::GroupFields* f = schedule::fields_of(s_, g_, id);
    stored_[id] = f && f->is_stored();
    if (f && f->accumulate) p_.states[id] = *f->accumulate;
  }
}

void Planner::note(const std::string& text) {
  if (std::find(p_.notes.begin(), p_.notes.end(), text) == p_.notes.end()) p_.notes.push_back(text);
}

void Planner::run() {
  choose_shared();
  while (!group_folds()) {}
  place_maps();
  donate();
  order_steps();
  place_buffers();
  place_arena();
}

namespace {
void need_bound(const ir::Graph& g, NodeId id) {
  auto bound = [&](const ir::Extent& e) {
    if (!e.is_constant())
      throw Error(g[id].where, "a plan of " + label(g, id) + " in which a number is not known: " + e.text(),
                  {{"plans are made for numbers", {}}},
                  "bind the symbols first: bind(graph, {{\"name\", value}, ..})");
  };
  for (uint32_t p = 0; p < g.ports(id); ++p)
    for (auto& e : g.shape({id, p})) bound(e);
  if (auto* c = g[id].comp()) {
    for (auto& e : c->extents()) bound(e);
    for (auto& a : c->args)
      for (auto& f : a.view) bound(f.c);
    auto domain = [&](const ir::Domain& d) {
      for (auto& piece : d)
        for (auto& f : piece) bound(f.c);
    };
    for (auto& d : c->guards) domain(d);
    domain(c->domain);
  }
  if (auto* r = g[id].recur()) bound(r->steps);
}

Plan planned(ir::Graph graph, const schedule::Schedule& s, const target::Target& t,
             std::map<NodeId, NodeId> heir, bool body) {
  auto g = std::make_shared<ir::Graph>(std::move(graph));
  for (NodeId id = 0; id < g->nodes.size(); ++id) need_bound(*g, id);
  Plan p;
  p.graph = g;
  Planner(p, g->pool, s, t, std::move(heir), body).run();
  return p;
}
} // namespace

Plan make_plan(const ir::Graph& g, const schedule::Schedule& s, const target::Target& t) {
  return planned(g, s, t, {}, false);
}

// The step graph as it stands, ids and all; its outputs are the new states, then the emits that are no old
// states (those are copied at the head of the body, so that they never keep a state from being updated in
// place).
Plan make_body(const ir::Recur& r, const schedule::Schedule& s, const target::Target& t) {
  ir::Graph g = *r.step;
  g.outputs.clear();
  std::map<NodeId, NodeId> heir;
  for (size_t k = 0; k < r.states.size(); ++k) {
    auto& in = std::get<ir::Input>(g.nodes[r.states[k].in].what);
    in.kind = ir::Input::state;
    g.outputs.push_back({r.states[k].out, "next " + std::to_string(k), in.format});
    heir[r.states[k].in] = r.states[k].out.node;
  }
  for (size_t k = 0; k < r.emits.size(); ++k)
    if (!g[r.emits[k].out.node].input())
      g.outputs.push_back(
          {r.emits[k].out, "emit " + std::to_string(k), ir::default_format(g.type(r.emits[k].out))});
  return planned(std::move(g), s, t, std::move(heir), true);
}

} // namespace tang::plan
