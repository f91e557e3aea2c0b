// Is a kernel well formed, inside its memories, and free of races by construction?
#pragma once
#include <string>
#include <vector>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// What is wrong, or could not be proved, one line each; empty when nothing is.
// Form: ranks, types, variables defined once and before use, destinations writable, tiles written before they
// are read along every path, in-place statements that do not depend on the order of points. Bounds: an
// unchecked reference lies inside its memory for all values of the variables that reach it; in a partial
// segment a point counts only under one of its `partial` bounds, in a full one always.
// Grid: no element of a global that is written is touched by two workgroups. A gathered coordinate is left to
// simulate().
std::vector<std::string> problems(const Kernel& k);

} // namespace tang::kernel
