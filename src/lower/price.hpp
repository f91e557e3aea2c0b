// Where operands lie, and what that costs: which axis gets the lanes, which side of a contraction.
#pragma once
#include "tang/lower/choose.hpp"

namespace tang::lower {

// The axis that most of what a node reads and writes is contiguous along: elements that move with stride 1, less those that
// move with a larger one.
int vector_axis(const ir::Graph& g, const ir::Comp& n);
// The rows' operand is read where it lies, an element at a time, by so few panels of columns that laying it out would
// cost more, or when all of it stays in the caches anyway. `size`: its elements; `apart`: between neighbouring terms.
bool reads_rows_in_place(double panels, double size, int64_t apart);

// Elements between neighbours along `axis` in the memory that a factor reads; nothing for anything but one plain read
// whose presence no bound of that side's axes decides.
std::optional<int64_t> stride_of(const ir::Graph& g, const ir::Comp& n, const Contraction& c, const std::vector<int>& factors,
                                 int axis);
// Cycles of one worker, for register blocks of rows x columns (a multiple of lanes).
double price(const ir::Graph& g, const ir::Comp& n, size_t component, const Contraction& c, int64_t rows, int64_t columns,
             int64_t lanes);

} // namespace tang::lower
