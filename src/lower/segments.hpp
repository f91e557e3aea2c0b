// A domain as the blocks of one axis: where blocks have live points, and where all their points live.
#pragma once
#include <functional>

#include "tang/lower/frame.hpp"

namespace tang::lower {

// The least and the greatest value, over a block, of an index read that is not the same for all of it.
using Extrema = std::function<std::optional<std::pair<Affine, Affine>>(int arg)>;

// Segments of the pipeline over core axis `axis` for one piece of the domain of `n`; Lets go to `before`. `exact`: a ragged last
// block is partial unless the piece says otherwise; else it counts as full, and statements test the end themselves.
std::vector<kernel::Segment> segments(Frame& f, const ir::Comp& n, const std::vector<int>& core, const ir::Conj& piece, int axis,
                                      kernel::Block& before, bool exact = false, const Extrema& extrema = {});

// Does every piece of the domain bound core axis `axis` from both sides by values that are read? Then a run of it lives,
// of which nothing is known but that others have the rest: as a rule a short one.
bool is_run(const ir::Comp& n, const std::vector<int>& core, int axis);

}  // namespace tang::lower
