// Rows of fragments as they are staged for bulk copies and matrix instructions.
#pragma once
#include "tang/emit/c_body.hpp"

namespace tang::emit {

// The q-th 16 columns (halves) or 8 columns (words) of a warp's 16 rows, of at most 64 or 32, to a box of
// 128-byte rows at the address `to`, whose 16-byte chunks are swizzled by the row. `values`: the lane's registers.
void stage_halves(Unit& u, const std::string& values, const std::string& to, int64_t q, int64_t columns);
void stage_words(Unit& u, const std::string& values, const std::string& to, int64_t q, int64_t columns);

} // namespace tang::emit
