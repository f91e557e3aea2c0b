// The order in which a workgroup of one lane issues the rows it has.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::lower {

constexpr int64_t stagger_most = 64; // rows of a workgroup: the first and the last wait alone

// Rows one after the other, so that what belongs to a row stays near, and staggered: while one row is stored,
// the next is worked on and the one after that is brought in; where no pass computes much, two rows at each place.
// A printer may join what stands side by side into one loop: some waits, some computes. False: `k` as it was.
bool stagger_rows(kernel::Kernel& k);

// Rows that a workgroup may have to be staggered: the largest number up to `most` that divides all.
int64_t rows_to_stagger(int64_t all, int64_t most);

} // namespace tang::lower
