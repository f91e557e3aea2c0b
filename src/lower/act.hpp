// How a term moves with the base of its fold, where the base is final.
#pragma once
#include "tang/ir/graph.hpp"

namespace tang::lower {

// select(own = identity, 0, e), where the new base is the join of all its terms: a term at the identity of
// max (or min) under a base above it has e = 0 anyway, so that the test is of the base: once a row instead of
// once a term.
ir::Id settled_act(ir::Pool& p, ir::Id act, const ir::Monoid& m);

// Is the act 0 for an own base at its identity? A dead term stands as that identity: for most acts it then weighs
// nothing, for some (the sum beside the largest) 1.
bool dies_at_identity(ir::Pool& p, ir::Id act, const ir::Monoid& m, const std::vector<int>& base);

} // namespace tang::lower
