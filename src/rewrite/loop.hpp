// A recurrence in the making: its step grows node by node.
#pragma once
#include "tang/rewrite/import.hpp"

namespace tang::rewrite {

class Loop {
public:
  Loop(ir::Extent steps, bool reverse, ir::Format clock, const ir::Symbols& symbols);

  Graph step;

  Port time() const { return {r_.time, 0}; }

  // Zeros where there is no init.
  Port state(const std::string& name, const std::vector<ir::Extent>& shape, std::optional<Port> init = {});
  // `view` of `from` over (time, local axes).
  Port arg(const std::string& name, const std::vector<ir::Extent>& shape, Port from, std::vector<Form> view);
  void next(Port value); // of the states, in their order
  // `view` over (time, local axes) of an array of `shape`.
  void emit(Port value, std::vector<Form> view, std::vector<ir::Extent> shape);
  NodeId add_to(Graph& g, const Node& like); // ports: final states, then emits

private:
  Port input(const std::string& name, const std::vector<ir::Extent>& shape, ir::Input::Kind kind,
             ir::Format format);
  ir::Recur r_;
  size_t given_ = 0; // next states
};

// A map over `points` under construction: its reads are made where they are used.
struct MapOf {
  Graph& g;
  Comp n = {};

  MapOf(Graph& graph, std::vector<ir::Extent> points);
  Id at(Port from, std::vector<Form> view);

  Id coordinate(int axis) { return g.pool.leaf(Op::coord, Type::index, axis); }

  Port add(Id lift, const std::string& name);
  Port add_sum(std::vector<ir::Extent> folds, Id lift, const std::string& name); // axes after the points
};

} // namespace tang::rewrite
