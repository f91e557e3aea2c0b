// Fragments: which element of a matrix tile each register of each lane holds. Rows of data; a lane map is a
// layout.
#pragma once
#include "tang/kernel/layout.hpp"

namespace tang::kernel {

struct Fragment {
  const char* instruction;
  char operand; // 'a', 'b' or 'd' (the accumulator)
  Team team;
  int rows, columns;         // of the tile, as stored: a [m, k], b [k, n], d [m, n]
  std::vector<Mode> lane;    // of the team, outermost first; strides in elements of the row-major tile
  std::vector<Mode> element; // of one lane

  int lanes() const;
  int elements() const;
  // Flat coordinate lane * elements + element -> row * columns + column.
  Layout map() const;
};

std::vector<Fragment> mma_m16n8k16(); // a, b, d; 16-bit operands
Fragment wgmma_a();                   // [64, 16] from registers, 16-bit operands
Fragment wgmma_d(int n);              // [64, n], n a multiple of 8

// The accumulator `d`, columns from `column` on, is `operand` as it lies: element e of the operand is element
// e + first of d, in every lane. The score of attention becomes the next operand without moving data.
struct Cast {
  bool holds;
  int first;
};

Cast is_cast(const Fragment& d, int column, const Fragment& operand);

// The 128-byte swizzle of rows of 128 bytes, in bytes: 16-byte chunk c of row r lies at chunk c xor (r mod
// 8).
inline constexpr Swizzle swizzle_128b{3, 4, 7};

} // namespace tang::kernel
