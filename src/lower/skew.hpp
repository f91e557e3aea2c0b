// The order in which a workgroup of one lane issues the rows it has.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::lower {

// Rows one after the other, so that what belongs to a row stays near; and the pass that stores a row rides
// with the dearest pass of the next one: one waits for memory, the other computes. `k` as it was when nothing
// is gained.
void skew_rows(kernel::Kernel& k);

// Rows that a workgroup may have to be skewed: the largest number up to `most` that divides all.
int64_t rows_to_skew(int64_t all, int64_t most);

} // namespace tang::lower
