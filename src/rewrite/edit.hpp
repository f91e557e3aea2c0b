// Edit: the next version of a graph, built node by node under a map of ports. The pool is shared, so terms
// keep their ids.
#pragma once
#include <optional>

#include "tang/ir/graph.hpp"

namespace tang::rewrite {

using ir::Arg;
using ir::Comp;
using ir::Domain;
using ir::Form;
using ir::Graph;
using ir::Id;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::Pool;
using ir::Port;
using ir::Type;

// Nodes that the outputs need, and all inputs.
std::vector<char> alive(const Graph& g);

class Edit {
public:
  explicit Edit(const Graph& from);
  const Graph& from;
  Graph to;
  std::vector<char> live;         // of `from`
  Node node(NodeId id) const;     // the node with its reads mapped, not yet added
  NodeId put(NodeId old, Node n); // adds it in the place of `old`: same ports

  void copy(NodeId id) { put(id, node(id)); }

  void set(Port old, Port now);
  Port at(Port old) const;
  Graph finish(); // maps the outputs

private:
  std::vector<std::vector<std::optional<Port>>> ports_;
};

// The whole pass of a rule that changes nodes one by one: `change` edits a comprehension in place (its reads
// are those of the new graph) and says what it did, or nothing.
using Change = std::function<std::optional<std::string>(Edit&, NodeId, Comp&)>;

struct Changed {
  Graph graph;
  std::vector<std::string> what;
};

Changed change_each(const Graph& g, const Change& change);

// The recurrence with another step, or nothing. `change` gets the step with its next states and emits as its
// outputs, in this order, and keeps them and the names of the inputs.
std::optional<ir::Recur> with_step(const ir::Recur& r,
                                   const std::function<std::optional<Graph>(const Graph&)>& change);

} // namespace tang::rewrite
