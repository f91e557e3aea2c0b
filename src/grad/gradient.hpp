// Gradients of graphs: a graph in, the same graph with adjoints (or tangents) beside it out.
#pragma once
#include "tang/grad/degree.hpp"
#include "tang/rewrite/driver.hpp"

namespace tang::diff {

struct Seed {
  ir::Port of;
  std::optional<ir::Port> with; // its adjoint, of the same shape; none: ones
};

struct Options {
  // Drop the gradient of a max that the degree calculus proves irrelevant; without, every max is gated.
  bool eliminate = true;
  // Steps between the states of a recurrence that are remembered for its adjoint; those between are computed
  // again from them, segment by segment; the states of steps that fill no segment are remembered. 0: all are.
  int64_t segment = 0;
  // Steps a chunk of the recurrences that are affine in their states (`rewrite::chunk_all`), before they are
  // differentiated: what they remember are sums of each chunk, no states. 0: none. By estimate: chunks of 32
  // steps where they evaluate few more terms than the steps.
  static constexpr int64_t by_estimate = -1;
  int64_t chunk = by_estimate;
};

struct Derivative {
  ir::Graph graph;                        // canonical; keeps the outputs that the graph had
  std::vector<ir::Port> of;               // one a requested port, in their order and of their shapes
  std::vector<std::vector<ir::Port>> now; // where each port of the given graph is now; empty: dropped
  rewrite::Trace trace;                   // what was prepared, and each elimination with its law
  std::vector<Proof> proofs;
};

// d (sum of seeds . ports) / d wrt, by reverse mode. A requested port that nothing depends on gives zeros.
// Refused by name where something has no gradient: the largest over several axes of which one is symbolic.
Result<Derivative> gradient(const ir::Graph& g, const std::vector<Seed>& seeds,
                            const std::vector<ir::Port>& wrt, const Options& options = {});

struct Along {
  ir::Port of, tangent;
};

// The tangents of `of` when each of `along` moves as given, by forward mode.
Result<Derivative> jvp(const ir::Graph& g, const std::vector<Along>& along, const std::vector<ir::Port>& of);

} // namespace tang::diff
