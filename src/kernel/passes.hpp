// Passes over the columns of a row that share a loop: lowering puts them side by side, a printer joins them.
#pragma once
#include <cstdint>

namespace tang::kernel {

constexpr int64_t wide_row = 1024; // columns of a pass that waits for memory long enough to be worth it
constexpr int joined_chains = 2;   // accumulators of a fold in such a loop: registers are for the others, too

} // namespace tang::kernel
