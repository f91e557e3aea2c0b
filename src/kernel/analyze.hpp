// What a kernel costs, read off its coefficients: contiguous axes, vector widths, bytes by level, operations,
// registers.
#pragma once
#include <array>

#include "tang/kernel/facts.hpp"

namespace tang::kernel {

// The address of an element, in elements from the start of its memory; nothing when a coordinate is gathered.
std::optional<Affine> address(const Kernel& k, const Ref& r);
// The axis along which the address moves by one element, or -1.
int contiguous_axis(const Kernel& k, const Ref& r, const std::vector<TileAxis>& axes);
// Elements along axes[axis] that one aligned vector access can move: the largest power of two, at most
// `limit`, that divides the axis and every other part of the address. 1 where the axis is not contiguous.
int vector_width(const Kernel& k, const Ref& r, const std::vector<TileAxis>& axes, int axis,
                 const Facts& known, int limit);

// One reference of a statement.
struct Use {
  const Stmt* statement;
  const Ref* ref;
  bool writes = false;
  int axis = -1; // contiguous, of the statement's axes (a fold: kept, then folded; a contraction: m, n, k)
  int width = 1; // along it
};

std::vector<Use> uses(const Kernel& k, int limit = 16);

struct Traffic {
  std::array<int64_t, 4> loaded{}, stored{}; // bytes, by Home
  std::vector<int64_t> loaded_of, stored_of; // bytes, by memory
  int64_t flops = 0;                         // real adds, multiplications, comparisons; a multiply-add is two
  int64_t contracted = 0;                    // of these, in contractions
  int64_t padded = 0;                        // what contractions compute: whole register blocks
  int64_t special = 0;                       // reciprocals, roots, exponentials, logarithms, sines
  bool exact =
      true; // false: a bound depends on data, or the walk was cut short and blocks were taken for alike
};

// Each execution of a statement moves the distinct elements that its references name, within the smallest box
// that its bounds leave (a block with a diagonal counts whole). Blocks that a domain's segments leave out are
// not counted. A contraction reads an operand once for each register block of the other side, of rows x
// (vectors * lanes).
Traffic traffic(const Kernel& k, int lanes = 1);

// Vector registers that the register block of a contraction takes: accumulators, a row of b, a broadcast of
// a.
inline int registers(const Contract& c) { return c.rows * c.vectors + c.vectors + 1; }

} // namespace tang::kernel
