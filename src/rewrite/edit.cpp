#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

std::vector<char> alive(const Graph& g) {
  std::vector<char> out(g.nodes.size(), 0);
  for (auto& o : g.outputs) out[o.port.node] = 1;
  for (NodeId id = NodeId(g.nodes.size()); id-- > 0;) {
    const Node& n = g[id];
    if (n.input()) out[id] = 1;
    if (!out[id]) continue;
    if (auto* c = n.comp())
      for (auto& a : c->args) out[a.from.node] = 1;
    if (n.recur())
      for (Port p : ir::sources(g, id)) out[p.node] = 1;
  }
  return out;
}

Edit::Edit(const Graph& g) : from(g), live(alive(g)), ports_(g.nodes.size()) {
  to.pool = g.pool;
  to.symbols = g.symbols;
  to.nodes.reserve(g.nodes.size() + 16);
}

Port Edit::at(Port old) const {
  auto& row = ports_[old.node];
  check(old.port < row.size() && row[old.port],
        "a read of " + from.label(old) + " before its new version exists");
  return *row[old.port];
}

void Edit::set(Port old, Port now) {
  auto& row = ports_[old.node];
  if (row.size() <= old.port) row.resize(from.ports(old.node));
  row[old.port] = now;
}

Node Edit::node(NodeId id) const {
  Node n = from.nodes[id];
  if (auto* c = std::get_if<Comp>(&n.what))
    for (auto& a : c->args) a.from = at(a.from);
  if (auto* r = std::get_if<ir::Recur>(&n.what)) {
    for (auto& s : r->states)
      if (s.init) s.init = at(*s.init);
    for (auto& a : r->args) a.from = at(a.from);
  }
  return n;
}

NodeId Edit::put(NodeId old, Node n) {
  const size_t ports = from.ports(old);
  const NodeId now = to.add(std::move(n));
  for (uint32_t p = 0; p < ports; ++p) set({old, p}, {now, p});
  return now;
}

Graph Edit::finish() {
  for (auto& o : from.outputs) to.outputs.push_back({at(o.port), o.name, o.format});
  return std::move(to);
}

Changed change_each(const Graph& g, const Change& change) {
  Edit e(g);
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node n = e.node(id);
    if (auto* c = std::get_if<Comp>(&n.what))
      if (auto done = change(e, id, *c)) what.push_back(*done);
    e.put(id, std::move(n));
  }
  Graph out = e.finish();
  return {std::move(out), std::move(what)};
}

std::optional<ir::Recur> with_step(const ir::Recur& r,
                                   const std::function<std::optional<Graph>(const Graph&)>& change) {
  const Graph& old = *r.step;
  Graph inner = old;
  inner.outputs.clear();
  auto add = [&](Port p, const std::string& name) {
    inner.outputs.push_back({p, name, ir::default_format(old.type(p))});
  };
  for (size_t k = 0; k < r.states.size(); ++k) add(r.states[k].out, "next " + std::to_string(k));
  for (size_t k = 0; k < r.emits.size(); ++k) add(r.emits[k].out, "emit " + std::to_string(k));
  std::optional<Graph> next = change(inner);
  if (!next) return {};
  std::map<std::string, NodeId> named;
  for (NodeId k = 0; k < next->nodes.size(); ++k)
    if (next->nodes[k].input()) named[next->nodes[k].name] = k;
  ir::Recur out = r;
  auto now = [&](NodeId in) { return named.at(old[in].name); };
  for (auto& s : out.states) s.in = now(s.in);
  for (auto& a : out.args) a.in = now(a.in);
  out.time = now(r.time);
  size_t k = 0;
  for (auto& s : out.states) s.out = next->outputs[k++].port;
  for (auto& x : out.emits) x.out = next->outputs[k++].port;
  out.step = std::make_shared<const Graph>(std::move(*next));
  return out;
}

} // namespace tang::rewrite
