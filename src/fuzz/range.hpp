// What the generator knows of a value: between which bounds it lies, and whether it may be infinite.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace tang::fuzz {

inline constexpr double inf = std::numeric_limits<double>::infinity();

struct Range {
  double lo = 0, hi = 0; // of the finite values
  bool infinite = false; // may also be an infinity: only max, min, exp and a select may see it
  bool sharp = true;     // computed without rounding: a comparison of it decides the same everywhere

  double size() const { return std::max(std::fabs(lo), std::fabs(hi)); }
};

inline Range joined(const Range& a, const Range& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.infinite || b.infinite, a.sharp && b.sharp};
}

inline Range product(const Range& a, const Range& b) {
  const double c[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4), false, a.sharp && b.sharp};
}

} // namespace tang::fuzz
