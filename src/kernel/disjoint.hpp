// Do two accesses of one memory, made in two different states, always touch different elements?
#pragma once
#include "tang/kernel/facts.hpp"

namespace tang::kernel {

struct Separator {
  Var var;
  int64_t step = 1; // two states differ by at least this much where they differ
};

// An access: its coordinates, and what is known where it happens (one of these).
struct Place {
  std::vector<Affine> index;
  std::vector<Facts> known;
};

// The separators by which two touches of one element may still differ; empty: states that differ in any
// separator touch different elements. Variables of `shared` are equal in both states.
std::vector<Var> unseparated(const Place& a, const Place& b, const std::vector<Separator>& by,
                             const std::set<Var>& shared, int offset);

} // namespace tang::kernel
