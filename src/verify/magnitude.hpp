// The size of what is added up in a node: what its rounding errors are small against when its terms cancel.
#pragma once
#include "tang/eval/oracle.hpp"

namespace tang::verify {

// The largest sum of |terms| over the points of a map or plain sum, its reads as `o` has them; 0 for any
// other node. (The gradient of a mean through its own variance is 0: only this says how exactly.)
double magnitude(const ir::Graph& g, eval::Oracle& o, ir::Port p);

} // namespace tang::verify
