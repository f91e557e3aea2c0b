// Is a sum of this lift a contraction? The factors, as written, in two groups.
#pragma once
#include <functional>
#include <set>

#include "tang/ir/graph.hpp"

namespace tang::lower {

// One factor of a lift: what it is for the caller, and which axes of the node it depends on.
struct Factor {
  int id = 0;
  std::set<int> axes;
};
struct Sides {
  std::vector<int> a, b;       // factor ids
  std::vector<int> m, n, k;    // axes of the node; m's and n's in ascending order
};
// Points of every factor that has points. One whose points all others have, too, and more, is a scale of the batch and
// does not count.
std::set<int> batch_axes(const std::vector<Factor>& factors, const std::set<int>& points);

// `points` and `folds` are the axes with more than one element in a block; others count as constants. b is the side that
// holds `last` (the axis that is contiguous in the result). Refused when the product does not split in two groups that
// both read every fold axis and have points of their own.
Result<Sides> split_factors(const std::vector<Factor>& factors, const std::set<int>& points, const std::set<int>& folds,
                            int last);

// Factors without points of their own go to the side with fewer elements, where both sides read every fold axis without them:
// they are multiplied in less often, and the other operand may be read where it lies. `size`: of an axis.
void lighten(Sides& sides, const std::vector<Factor>& factors, const std::set<int>& points, const std::set<int>& folds,
             const std::function<double(int)>& size);

}  // namespace tang::lower
