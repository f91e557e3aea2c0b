// Where a stored value may be missing.
#pragma once
#include "tang/ir/graph.hpp"

namespace tang::ir {

// May a read of this port find nothing there, by a predicate in a map's body, an output view that leaves
// coordinates out, what only live steps emit, or a read that may miss itself? With `by_domain` also by the
// domain of the map itself; those of the maps that it reads always count.
bool may_be_absent(Graph& g, Port from, bool by_domain);

} // namespace tang::ir
