// Ranges of integers in a kernel: of variables, affine forms and terms; and whether 32 bits are enough for all of them.
#pragma once
#include <functional>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

struct Range {
  int64_t lo = INT64_MIN / 4, hi = INT64_MAX / 4;

  bool known() const { return lo > INT64_MIN / 4 && hi < INT64_MAX / 4; }
};

Range range(const Affine& a, const std::vector<Range>& vars);
// Of a term of type index, from those of its operands; nothing is known of leaves.
Range term_range(const Pool& p, const expr::Term& t, const std::function<Range(size_t)>& operand);
Range grid_range(const GridAxis& g); // the first element of a block
Range format_range(Format f); // of an integer that is stored so; unknown for 64 bits
// Why some integer of the kernel might not fit 32 bits, or nothing. INT64_MAX stands for "nowhere" and fits. Integers
// read from memory, and reals that become integers, are taken to lie within +-2^29 (or to be "nowhere"): a target without
// wider integers promises no more.
std::optional<std::string> beyond_32_bits(const Kernel& k);

} // namespace tang::kernel
