// Blocks of sums over windows, for workgroups of many lanes.
#pragma once
#include "tang/plan/plan.hpp"

namespace tang::lower {

// Does a result read along an axis that its fold reads along, too?
bool slides(const ir::Comp& n);

// Where results along a point axis read overlapping windows of one array (kernel/windows.hpp): that axis as
// long as a lane's runs, lanes along the point axis `vector`, then more points until every lane has work.
// `tile`: of each core axis. Whether it is such a sum.
bool window_tiles(const ir::Comp& n, const plan::Member& m, const plan::Group& group, int vector,
                  std::vector<int64_t>& tile);

} // namespace tang::lower
