// Terms over the columns of a fragment, where a lane holds many columns of few rows: what is the same along a
// row moves out, so that the rest is a multiply-add and one elementary function a column.
#pragma once
#include <functional>
#include <optional>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

using Varies = std::function<bool(Id)>; // along the row

// An equal term (algebraically; the rounding of a row's common factor moves):
//   x / y, y the same along the row               -> x * (1 / y)
//   the odd quotient of powers of e^-|x|          -> 1 - 2 s, s = 1 / (1 + 2^(k x)), right to one rounding of 1
//   its derivative                                -> k (s - s s)
//   a sum                                         -> k a + .. + rest: k numbers or the same along the row, as
//   rest is to_real(k j + rest), j the column             -> k to_real(j) + to_real(rest)   (exact below
//   2^24) select(x == -inf, 0, exp2(k x + rest)), k > 0 -> exp2(k x + (rest, or 0 where that is inf))
Id by_rows(Pool& p, Id value, const Varies& varies);

// value = factor * rest with a number factor: what a fold whose operation commutes with it may multiply by
// afterwards.
struct Scaled {
  double factor;
  Id rest;
};

Scaled scaled(const Pool& p, Id value);

} // namespace tang::kernel
