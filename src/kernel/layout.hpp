// Layouts: functions from flat coordinates to offsets, mixed-radix affine with an optional xor swizzle, and
// their algebra.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

struct Mode {
  int64_t extent, stride;
};

// Bits [from, from + bits) of an offset are xored with bits [with, with + bits): its own inverse.
struct Swizzle {
  int bits = 0, from = 0, with = 0;

  int64_t operator()(int64_t x) const {
    const int64_t mask = (int64_t(1) << bits) - 1;
    return x ^ ((x >> with & mask) << from);
  }
};

struct Layout {
  std::vector<Mode> modes; // outermost first: the last varies fastest with the flat coordinate
  Swizzle swizzle;

  int64_t size() const; // coordinates
  int64_t span() const; // one more than the largest offset before the swizzle
  int64_t operator()(int64_t flat) const;
  int64_t at(const std::vector<int64_t>& coordinate) const;
};

std::string text(const Layout& l);
Layout layout_of(const Memory& m);
Layout joined(const Layout& outer,
              const Layout& inner); // coordinates (o, i) -> outer(o) + inner(i); one swizzle at most
Layout coalesced(const Layout& l);  // the same function with as few modes as possible

// compose(a, b)(i) == a(b(i)) for every i; refused where that is no layout.
Result<Layout> compose(const Layout& a, const Layout& b);
// (complement(b, n), b) together take each offset below n once; refused where b is not injective or n is no
// multiple.
Result<Layout> complement(const Layout& b, int64_t n);
// For bijections onto [0, size): inverse(l)(l(i)) == i.
Result<Layout> inverse(const Layout& l);

struct Parts {
  Layout outer, inner;
};

// inner(i) = a(b(i)), the tile; outer picks the tile: outer(o) + inner(i) visits a's image once (before its
// swizzle).
Result<Parts> divide(const Layout& a, const Layout& b);
// inner = a, repeated over b: outer(o) + inner(i) is injective when a and b are, and outer is b in units of
// a's place.
Result<Parts> product(const Layout& a, const Layout& b);

// Accesses of 32 lanes at these byte addresses to shared memory of 32 banks of 4 bytes: how many rounds they
// take.
int bank_rounds(const std::vector<int64_t>& bytes);

} // namespace tang::kernel
