// A point axis that an equality of the domain solves: the sum at a point holds the terms whose key is that point.
#pragma once
#include "tang/plan/plan.hpp"

namespace tang::lower {

struct Key {
  int axis = 0;       // of the member, a private point
  ir::Form at;        // its value, of core axes and gathered indices
  ir::Domain domain;  // the rest of the member's domain
};
// Nothing when the member has no such axis, when its lift reads it, or when more than the equality bounds it.
std::optional<Key> solved(const ir::Graph& g, const plan::Member& m, const ir::Comp& n);

}  // namespace tang::lower
