// Reads of a row's own values, brought before its folds.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// `k` has its rows dealt. What a statement of one column that follows a fold reads of the arguments (a label's entry of the
// row, say) is copied into registers before the first fold, so that no lane waits for memory when the row is folded.
void read_early(Kernel& k);

} // namespace tang::kernel
