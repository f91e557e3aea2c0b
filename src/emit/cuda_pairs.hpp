// Which reads of a statement over fragments a lane makes two columns at a time.
#pragma once
#include "tang/emit/c_body.hpp"

namespace tang::emit {

// Are this read's elements at columns c and c + 1, c even, two neighbours that begin at an even place, and
// both of them in the array or neither?
bool in_pairs(const Unit& u, const kernel::Ref& r, kernel::Var column);
// Are eight 16-bit elements from column c on, c a multiple of 8, 16 bytes that one lane moves at once? The four
// lanes of a row then bring 32 columns and hand each other their pairs.
bool in_quads(const Unit& u, const kernel::Ref& r, kernel::Var column);

} // namespace tang::emit
