// A domain as the blocks of one axis: where blocks have live points, and where all their points live.
#pragma once
#include "tang/lower/frame.hpp"

namespace tang::lower {

// Segments of the pipeline over core axis `axis` for one piece of the domain of `n`; Lets go to `before`.
std::vector<kernel::Segment> segments(Frame& f, const ir::Comp& n, const std::vector<int>& core, const ir::Conj& piece, int axis,
                                      kernel::Block& before);

}  // namespace tang::lower
