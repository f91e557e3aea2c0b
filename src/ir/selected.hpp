// What inputs of indices select.
#pragma once
#include <map>

#include "tang/ir/graph.hpp"

namespace tang::ir {

// Of each node whose values are coordinates of some read: the smallest dimension that they are a coordinate
// of, so that smaller values lie inside all of them. Of a node whose values are only compared with axes
// (keys, lengths, starts of runs): so much that smaller values lie on both sides of every such bound.
std::map<NodeId, int64_t> selected(const Graph& g);

} // namespace tang::ir
