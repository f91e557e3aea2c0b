// Statements for a workgroup of many lanes: tiles are shared, long folds with few points are shared among
// lanes.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/target/target.hpp"

namespace tang::kernel {

// `k` holds no Pipeline. A Fold whose points leave lanes idle becomes a Fold of partial results, one a lane,
// and Folds of those, in the order of lanes: terms keep their order where the fold asked for no lanes of its
// own (`vector` on a kept axis or none), else lane s takes every S-th term. Barriers are not placed yet.
Kernel distribute(const Kernel& k, const target::Target& t);

// Bytes of the tiles, each at its own place: `unit` is the alignment of a tile.
int64_t tile_bytes(const Kernel& k, int64_t unit = 16);

bool gathers(const Bounds& b); // whether some bound reads an index

} // namespace tang::kernel
