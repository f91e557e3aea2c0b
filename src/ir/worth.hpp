// Is a value worth storing, or better evaluated again where it is read? For the rules and the planner.
#pragma once
#include "tang/ir/graph.hpp"

namespace tang::ir {

// A value of `result` words made of `read` words, `largest` of them of one array. What is no larger than that
// array costs no more to read than the array itself, and its terms only once: a projection is stored, however
// few its terms; scores of more keys than features are not.
inline bool is_cheaper_evaluated(double result, double read, double largest) {
  return largest < result && is_cheaper_evaluated(result, read);
}

} // namespace tang::ir
