// Where a stored value may be missing.
#pragma once
#include <set>

#include "tang/ir/graph.hpp"

namespace tang::ir {

// May a read of this port find nothing there, by a predicate in a map's body, an output view that leaves
// coordinates out, what only live steps emit, or a read that may miss itself? With `by_domain` also by the
// domain of the map itself; those of the maps that it reads always count.
bool may_be_absent(Graph& g, Port from, bool by_domain);

// The points with which the domain of a node moves; and those with which the term of a component moves: it
// has to have all of them.
std::set<int> points_of_domain(const Comp& n);
std::set<int> points_of_term(const Pool& p, const Comp& n, size_t component);

} // namespace tang::ir
