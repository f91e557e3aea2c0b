// Sums over windows: neighbouring results read overlapping windows of one array.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// Results of one axis that a lane sums at once.
inline constexpr int64_t most_results = 16;

// For workgroups of many lanes. Where results along a kept axis of a sum read overlapping windows along a
// folded axis, one lane sums a run of them: a fold with a component a result, whose terms hold the whole
// window, so that each element is read once for all of them. An operand that does not move along the results
// is kept in a tile where neighbouring lanes would read it far apart. A limit whose failing means that a
// factor is read outside its memory is dropped: the element reads as 0. Printers may fuse the products with
// their sums. Sums of other forms stay as they are.
Kernel hold_windows(const Kernel& k);

} // namespace tang::kernel
