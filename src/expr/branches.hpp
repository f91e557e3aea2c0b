// Exact simplification of conditions and selects: holds for every value, NaN and infinities among them.
#pragma once
#include "tang/expr/pool.hpp"

namespace tang::expr {

// Comparisons with the ends of an order, conditions with a known side, selects whose branches agree.
Id settle_branches(Pool& p, Id id);

} // namespace tang::expr
