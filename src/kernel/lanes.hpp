// Scalar code over lanes: one register a term, one operation for a block of points at a time.
#pragma once
#include <cstdint>
#include <vector>

#include "tang/expr/format.hpp"
#include "tang/expr/op.hpp"

namespace tang::kernel {

inline constexpr int width = 64; // lanes of a block; a set of lanes is a mask
using Mask = uint64_t;

inline Mask first(int n) { return n >= width ? ~Mask(0) : (Mask(1) << n) - 1; }

struct Reg {
  double r[width];
  int64_t i[width];
};

struct Instr {
  expr::Op op;
  expr::Type in, out; // of the operands, of the result
  int dst = -1, a = -1, b = -1, c = -1;
  int64_t which = 0; // of a leaf
};

// A strict operation or a select on `n` lanes. Real results are rounded to `round` (f64: not at all).
void compute(const Instr& in, std::vector<Reg>& regs, int n, expr::Format round);

// Calls f(lane) for every lane of the mask, in order.
template <class F> inline void each(Mask m, int n, F f) {
  if (m == first(n))
    for (int l = 0; l < n; ++l) f(l);
  else
    for (; m; m &= m - 1) f(__builtin_ctzll(m));
}

} // namespace tang::kernel
