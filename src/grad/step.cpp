#include "tang/grad/step.hpp"

#include <algorithm>

namespace tang::diff {

NodeId add_input(Graph& g, const std::string& name, const std::vector<Extent>& shape, ir::Input::Kind kind) {
  auto taken = [&](const std::string& s) {
    return std::any_of(g.nodes.begin(), g.nodes.end(),
                       [&](const ir::Node& n) { return n.input() && n.name == s; });
  };
  std::string unique = name;
  for (int k = 1; taken(unique); ++k) unique = name + "_" + std::to_string(k);
  return g.add({ir::Input{kind, shape, ir::default_format(Type::real)}, unique, {}});
}

Port zeros(Graph& g, const std::vector<Extent>& shape) {
  Comp n;
  n.points = shape;
  n.lift = {g.pool.literal(0.0)};
  n.outs = {every_axis(shape.size())};
  return {g.add({std::move(n), "zeros", {}}), 0};
}

std::set<NodeId> inputs_used(const Graph& step, const ir::Recur& r) {
  std::set<NodeId> seen, out;
  std::vector<NodeId> todo;
  for (auto& s : r.states) todo.push_back(s.out.node);
  for (auto& e : r.emits) todo.push_back(e.out.node);
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    if (!seen.insert(id).second) continue;
    if (step[id].input()) out.insert(id);
    for (Port p : ir::sources(step, id)) todo.push_back(p.node);
  }
  return out;
}

void settle(ir::Recur& r, const Graph& step) {
  std::vector<char> seen(step.nodes.size(), 0);
  ir::Copier copier(step);
  const std::function<void(NodeId)> visit = [&](NodeId id) {
    if (seen[id]) return;
    seen[id] = 1;
    for (Port p : ir::sources(step, id)) visit(p.node);
    copier.copy(id);
  };
  visit(r.time);
  for (auto& s : r.states) visit(s.in);
  for (auto& a : r.args) visit(a.in);
  for (auto& s : r.states) visit(s.out.node);
  for (auto& e : r.emits) visit(e.out.node);
  auto now = [&](NodeId& id) { id = copier.at({id, 0}).node; };
  now(r.time);
  for (auto& s : r.states) now(s.in), s.out = copier.at(s.out);
  for (auto& a : r.args) now(a.in);
  for (auto& e : r.emits) e.out = copier.at(e.out);
  Graph& g = copier.to;
  auto keep = [&](Port p, const std::string& name) {
    g.outputs.push_back({p, name, ir::default_format(g.type(p))});
  };
  for (size_t k = 0; k < r.states.size(); ++k) keep(r.states[k].out, "next " + std::to_string(k));
  for (size_t k = 0; k < r.emits.size(); ++k) keep(r.emits[k].out, "emit " + std::to_string(k));
  r.step = std::make_shared<const Graph>(std::move(g));
}

} // namespace tang::diff
