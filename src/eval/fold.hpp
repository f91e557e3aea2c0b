// One comprehension over blocks of points: the part of the oracle that walks terms and combines states.
#pragma once
#include "tang/eval/oracle.hpp"
#include "tang/eval/tape.hpp"

namespace tang::eval {

// Fills `out` (one array a component) for the node, by the options that are not of this node alone;
// returns the number of live terms visited.
int64_t compute(const ir::Graph& g, ir::NodeId id, const std::vector<Source>& sources, const Numeric& numeric,
                const Options& options, std::vector<Array>& out);

} // namespace tang::eval
