// What a term takes to evaluate, in passes of adds: data for every choice between keeping and evaluating
// again.
#pragma once
#include "tang/expr/pool.hpp"

namespace tang::expr {

int effort(Op op);                  // of one operation, on a machine that multiplies and adds at one rate
int effort(const Pool& p, Id term); // of each operation of the term once

} // namespace tang::expr
