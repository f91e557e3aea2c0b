#include "tang/rewrite/loop.hpp"

#include "tang/expr/build.hpp"

namespace tang::rewrite {

Loop::Loop(ir::Extent steps, bool reverse, ir::Format clock, const ir::Symbols& symbols) {
  r_.steps = std::move(steps);
  r_.reverse = reverse;
  step.symbols = symbols;
  r_.time = input("time", {}, ir::Input::data, clock).node;
}

Port Loop::input(const std::string& name, const std::vector<ir::Extent>& shape, ir::Input::Kind kind,
                 ir::Format format) {
  return {step.add({ir::Input{kind, shape, format}, name, {}}), 0};
}

Port Loop::state(const std::string& name, const std::vector<ir::Extent>& shape, std::optional<Port> init) {
  const Port in = input(name, shape, ir::Input::state, ir::default_format(Type::real));
  r_.states.push_back({init, in.node, {}});
  return in;
}

Port Loop::arg(const std::string& name, const std::vector<ir::Extent>& shape, Port from,
               std::vector<Form> view) {
  const Port in = input(name, shape, ir::Input::data, ir::default_format(Type::real));
  r_.args.push_back({from, std::move(view), in.node});
  return in;
}

void Loop::next(Port value) { r_.states[given_++].out = value; }

void Loop::emit(Port value, std::vector<Form> view, std::vector<ir::Extent> shape) {
  r_.emits.push_back({value, std::move(view), std::move(shape)});
}

NodeId Loop::add_to(Graph& g, const Node& like) {
  check(given_ == r_.states.size(), "each state of a recurrence has a next value");
  const auto keep = [&](Port p, const std::string& name) {
    step.outputs.push_back({p, name, ir::default_format(step.type(p))});
  };
  for (size_t k = 0; k < r_.states.size(); ++k) keep(r_.states[k].out, "next " + std::to_string(k));
  for (size_t k = 0; k < r_.emits.size(); ++k) keep(r_.emits[k].out, "emit " + std::to_string(k));
  r_.step = std::make_shared<const Graph>(std::move(step));
  return g.add({std::move(r_), like.name, like.where});
}

MapOf::MapOf(Graph& graph, std::vector<ir::Extent> points) : g(graph) {
  n.points = std::move(points);
  n.outs = {{}};
  for (size_t d = 0; d < n.points.size(); ++d) n.outs[0].axes.push_back(int(d));
}

Id MapOf::at(Port from, std::vector<Form> view) {
  return read_leaf(g.pool, g.type(from), add_read(n, {from, std::move(view)}));
}

Port MapOf::add(Id lift, const std::string& name) {
  n.lift = {lift};
  return {g.add({std::move(n), name, {}}), 0};
}

Port MapOf::add_sum(std::vector<ir::Extent> folds, Id lift, const std::string& name) {
  const expr::E x{&g.pool, g.pool.leaf(Op::var, Type::real, 0)},
      y{&g.pool, g.pool.leaf(Op::var, Type::real, 1)};
  n.folds = std::move(folds);
  n.monoid = ir::Monoid{"sum", {expr::real(0)}, {(x + y).id}, true};
  return add(lift, name);
}

} // namespace tang::rewrite
