// Kernels whose statements all go along the same rows, for workgroups of many lanes: a team of lanes has a
// row, in registers where it is read again, and joins its partial folds by exchanging registers.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/target/target.hpp"

namespace tang::kernel {

struct Teams {
  int lanes = 1, team = 1; // of a block, of a row
  int cluster = 1;         // workgroups that share a block
  int64_t rows = 1;        // of a block
  int64_t columns = 0;     // that a lane holds of a row, at most
};

// Teams for rows of so many columns, `rows` of them in all. `joining`: the effort of joining two partial
// results; dear ones are joined within a subgroup, so that each lane has more terms of its own. `stores`: rows are written.
Teams teams(int64_t columns, int64_t rows, int joining, const target::Target& t, bool stores = true);

// Lanes that join partial results in pairs: a power of two of them.
inline bool has_teams(const target::Target& t) {
  const auto is_power = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
  return (t.exchanges || t.meets) && t.lanes > 1 && is_power(t.lanes) && is_power(t.workgroup_limit);
}

constexpr int64_t most_at_once = 8; // neighbours that a lane takes at once

inline int power_above(int64_t n) { // or equal
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

constexpr int64_t most_held = 64; // elements of a row that one lane keeps in registers

// Row-major over these axes and nothing else: the flat point itself.
bool is_flat(const Kernel& k, const Ref& r, const std::vector<TileAxis>& axes);

// The kernel with its rows dealt, or nothing: a statement is no Apply or Fold along the same rows. Without a fold only
// where `maps` says so, and what it keeps of a row fits into the lanes' registers.
std::optional<Kernel> deal_rows(const Kernel& k, const target::Target& t, bool maps = false);

} // namespace tang::kernel
