// A point that an equality of the domain solves: the sum there holds the terms whose key is that point.
#pragma once
#include <set>

#include "tang/plan/plan.hpp"

namespace tang::plan {

// The axes of `n` that a form moves with, through the reads it uses; those that a term moves with.
std::set<int> axes_of(const ir::Comp& n, const ir::Form& f);
std::set<int> axes_of(const ir::Graph& g, const ir::Comp& n, ir::Id term);

struct Key {
  int axis = 0;      // of the node, a point
  ir::Form at;       // its value, of the other axes and gathered indices
  ir::Domain domain; // the rest of the node's domain
};

// Nothing where the node's lift reads point axis `t`, or when more than one equality bounds it.
std::optional<Key> key_of(const ir::Graph& g, const ir::Comp& n, int t);

} // namespace tang::plan
