// Where a stored value may be missing.
#pragma once
#include <set>

#include "tang/ir/graph.hpp"

namespace tang::ir {

// What may leave out an element of a map: a predicate in a body; the domain of a map that another one reads.
enum Absence : unsigned { by_views = 0, by_predicates = 1, by_domains_read = 2 };

// May a read of this port find nothing there? An output view that leaves coordinates out and what only live
// steps emit always count, `counted` says what else does; a map is absent where it reads what is, unless an
// or_else catches that. The domain of the map itself never counts: its reader may repeat it.
bool may_be_absent(Graph& g, Port from, unsigned counted);

// The points with which the domain of a node moves; and those with which the term of a component moves: it
// has to have all of them.
std::set<int> points_of_domain(const Comp& n);
std::set<int> points_of_term(const Pool& p, const Comp& n, size_t component);

} // namespace tang::ir
