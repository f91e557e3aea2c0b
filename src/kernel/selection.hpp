// Monoids that only select: their components are pairs (value, place), and a combine keeps the pairs that
// come first in one total order. Found from the combine's terms, never from a name.
#pragma once
#include <optional>
#include <vector>

#include "tang/expr/pool.hpp"

namespace tang::kernel {

using expr::Id;
using expr::Pool;
using expr::Value;

// The order: NaN first, then larger values (or smaller ones), then smaller places. So the first of two pairs
// is the larger of two integers, the value's rank above the place's complement.
struct Selection {
  bool largest = true;           // of the values that are numbers, the largest comes first
  std::vector<int> value, place; // the components of each pair

  enum Kind : uint8_t { of_left, of_right, first, last };

  struct Node { // a pair of a side (`a`: which), or the first or the last of two nodes
    Kind kind;
    int a = -1, b = -1;
  };

  std::vector<Node> nodes; // operands come first
  std::vector<int> out;    // the node of each pair of the result
};

// Nothing where a component is no such pair, or an identity does not come last of all.
std::optional<Selection> selection(const Pool& p, const std::vector<Id>& combine,
                                   const std::vector<Value>& identity);

} // namespace tang::kernel
