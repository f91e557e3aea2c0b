// How far a kernel's rounded values may be from exact ones, from the order of its operations alone.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// |computed - exact| <= (e^growth - 1) weight. `growth` sums log(1 + u) over the roundings of the longest path, u half
// a unit in the last place of each: of a sum of exact terms it is (1 + u)^depth - 1, tree_sum_error of proofs/round, of
// rounded ones (1 + u)^depth (1 + delta) - 1, dot_error. The weight of a value is the value with the terms of every sum
// taken by size: |a| + |b| for a + b, |a| |b| for a b. Overflow and results below the normal numbers are left out.
struct Rounding {
  double growth = 0;
  bool positive = false; // not below 0
  bool solid = true;     // nothing cancels in it: its weight is its size
  std::string why;       // the bound needs the values themselves: what asks for them

  bool known() const { return why.empty(); }

  double bound() const;  // relative to the weight
};

using Roundings = std::vector<std::optional<Rounding>>; // of each memory's elements; nothing: never written

// What a kernel makes of its memories, where a vector has so many lanes.
void follow(const Kernel& k, int lanes, Roundings& memories);
// What `times` repetitions of `once` make of them: growth is that of the first two, carried on.
void repeat(int64_t times, Roundings& memories, const std::function<void(Roundings&)>& once);

} // namespace tang::kernel
