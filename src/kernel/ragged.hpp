// Rows whose first element lies at no multiple of what memory moves at once.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// The kernel with the columns of its row counted from the last place at or before the row's first element that is a
// multiple of `run` elements from its memory's start: column = place - (begin mod run), places below 0 and from the row's
// length on left out by bounds. References whose rows begin alike then move in aligned runs; others lie beside them.
// `columns`: of the row, one row a block; `places`: at least columns + run - 1. Nothing where a statement has other axes
// than the row's, or a tile holds the row in another order.
std::optional<Kernel> aligned_columns(const Kernel& k, int64_t columns, int run, int64_t places);

} // namespace tang::kernel
