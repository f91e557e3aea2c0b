// Passes over the columns of a row that share a loop: lowering puts them side by side, a printer joins them.
#pragma once
#include <cstdint>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

constexpr int64_t wide_row = 1024; // columns of a pass that waits for memory long enough to be worth it
constexpr int joined_chains = 2;   // accumulators of a fold in such a loop: registers are for the others, too
constexpr int dear_pass = 8;       // passes of adds: a pass of more computes while another row is on its way

// What a body takes at each point along `v`, in passes of adds: terms that do not move with `v` are left out.
int effort_along(const Pool& pool, const Body& body, Var v);

} // namespace tang::kernel
