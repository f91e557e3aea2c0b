// The best box tiles under a capacity, found by enumeration: what the bound is compared with.
#pragma once
#include "tang/bound/traffic.hpp"

namespace tang::bound {

struct Tiling {
  std::vector<int64_t> tile; // one a loop
  std::vector<int> order;    // loops between tiles, outermost first
  int64_t traffic = 0, footprint = 0;
  int64_t candidates = 0;
  bool exhaustive = true; // every tile that could be best was looked at
};

struct Room {
  int64_t capacity = 0;
  std::vector<int64_t> granule; // tiles are multiples of it (or the whole loop); empty: 1
  std::vector<std::vector<int>>
      held;                   // loops of further tiles that are held but never moved, one unit an element
  std::vector<int64_t> fixed; // a loop's tile where positive; empty: free
};

// Unmasked nests of affine views. A tile of each array is held; it is moved again whenever a loop outside
// changes that the array depends on or that lies outside such a loop. Outputs start fresh and are loaded
// again when they come back.
Result<Tiling> best_tiles(const Nest& n, const Room& room, int64_t most_candidates = 2'000'000);
int64_t traffic_of(const Nest& n, const std::vector<int64_t>& tile, const std::vector<int>& order);

// Two levels: the inner nest is the outer tile. Minimises the larger of the two times.
struct TwoLevels {
  Tiling outer, inner;
  double time = 0;
};

Result<TwoLevels> best_tiles(const Nest& n, const Room& outer, double outer_rate, const Room& inner,
                             double inner_rate);

} // namespace tang::bound
