// The error that one kernel may make by itself: the graph between what it was given and what it stores,
// bounded.
#include "tang/verify/bound.hpp"

namespace tang::verify {

using ir::NodeId;
using ir::Port;

namespace {
struct Between {
  std::vector<char> needed; // nodes that the kernel evaluates, and inputs
  std::set<Port> given;     // stored ports that it reads
};

Between between(const ir::Graph& g, const std::set<Port>& stored, NodeId at) {
  Between out{std::vector<char>(g.nodes.size(), 0), {}};
  std::vector<NodeId> todo{at};
  out.needed[at] = 1;
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    for (Port p : ir::sources(g, id)) {
      if (!g[p.node].input() && p.node != at && stored.count(p)) {
        out.given.insert(p);
      } else if (!out.needed[p.node]) {
        out.needed[p.node] = 1;
        todo.push_back(p.node);
      }
    }
  }
  return out;
}
} // namespace

std::optional<eval::Array> error_bound(const ir::Graph& g, eval::Oracle& o, const std::set<Port>& stored,
                                       Port at, const Arithmetic& a) {
  const Between b = between(g, stored, at.node);
  ir::Copier copier(g);
  eval::Inputs in;
  auto place = [&](Port p) {
    const std::string name = "given " + std::to_string(p.node) + "." + std::to_string(p.port);
    const ir::Input x{ir::Input::data, g.shape(p), ir::default_format(g.type(p))};
    copier.set(p, {copier.to.add({x, name, {}}), 0});
    in[name] = o.port(p);
  };
  for (NodeId id = 0; id <= at.node; ++id) {
    if (b.needed[id]) {
      if (g[id].recur()) return {};
      copier.copy(id);
      if (g[id].input()) in[g[id].name] = o.port({id, 0});
    }
    for (auto it = b.given.lower_bound({id, 0}); it != b.given.end() && it->node == id; ++it) place(*it);
  }
  copier.to.outputs = {{copier.at(at), "value", ir::Format::f32}};
  return error_bounds(copier.to, in, a).at("value");
}

} // namespace tang::verify
