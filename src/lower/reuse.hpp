// What one statement of a kernel has evaluated, a later one reads: terms that are dear to evaluate are kept
// in a tile, and divisions by what moves slower become multiplications.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::lower {

constexpr int dear_effort = 8; // a store and a load of a tile that lies near, in passes of adds

// Terms of a block that two statements evaluate at the same points, and that are dearer to evaluate again
// than to keep: evaluated once into a tile of at most `most` bytes. `far`: what a read of global memory adds
// to the effort. `in_turn`: one lane walks all points, so that a term that does not move with the outer axes of its
// statement is kept too.
void keep_dear_terms(kernel::Kernel& k, int64_t most, int far, bool in_turn = false);

// What the vectors of a statement read across a stride, and again at other points, is copied to a tile along them
// first: a gather an element, not one a point.
void bring_near(kernel::Kernel& k);

// Neighbouring statements over the same rows as one loop over rows, where the tiles that they hand on are then rows
// instead of blocks that the nearest memory does not hold.
void row_by_row(kernel::Kernel& k);

// Without integers that are constants.
void settle_constants(kernel::Kernel& k);

// ratio(a, b), where a moves along an axis that b does not, the longest or one inside b's own: a s r, with r the
// reciprocal of s b and s the power of two that keeps r and a s from over- or underflowing where the quotient does not.
void divide_once(kernel::Kernel& k);

} // namespace tang::lower
