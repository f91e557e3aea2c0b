// One order of commutative operands.
#pragma once
#include "tang/expr/pool.hpp"

namespace tang::expr {

// Commutative operands in structural order: equal for terms whose leaves were met in another order.
Id ordered(Pool& p, Id term);

} // namespace tang::expr
