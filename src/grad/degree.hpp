// The degree calculus: is the value of a node needed at all, or does it only shift what is normalised away?
#pragma once
#include <optional>

#include "tang/ir/graph.hpp"

namespace tang::diff {

// How a value moves when c(row) is added to the node in question, row by row:
//   scale: by the factor 2^(d c), shift: by d c, free: not at all. `row` gives the row over the coordinates
//   of
// the port.
struct Degree {
  enum Kind : uint8_t { free, scale, shift, none } kind = free;

  double d = 0;
  std::vector<ir::Form> row = {};
};

// A run of the calculus that succeeded: every root is free of `max`, so no gradient flows through it. The law
// is zero_gradient_of_max of proofs/grad/degree_theorem.v; a real degree whose size is below `rounding`
// counts as 0 (the product of log2 e and ln 2).
struct Proof {
  static constexpr double rounding = 1e-14;

  std::shared_ptr<const ir::Graph>
      graph; // whose ports these are: the graph or the step that was differentiated
  ir::Port max;
  std::vector<std::pair<ir::Port, Degree>> degrees; // of every port downstream that is not free, in order
  std::vector<ir::Port> roots;
};

// Empty: some root is not known to be free of `max` (Recur: never known). Nodes from `end` on are not looked
// at.
std::optional<Proof> stabilizing(const ir::Graph& g, ir::Port max, const std::vector<ir::Port>& roots,
                                 ir::NodeId end);
std::string print(const Proof& proof); // the node, and the degree of each node downstream

} // namespace tang::diff
