// A domain as the blocks of one axis: where blocks have live points, and where all their points live.
#pragma once
#include <functional>

#include "tang/lower/frame.hpp"

namespace tang::lower {

// The least and the greatest value, over a block, of an index read that is not the same for all of it.
using Extrema = std::function<std::optional<std::pair<Affine, Affine>>(int arg)>;

// Points of the axis for one block of the others: outside [live_lo, live_hi) none lives, inside [full_lo, full_hi) all do.
struct Run {
  Affine live_lo, live_hi, full_lo, full_hi;
};
// The same for bounds that read integers at points of the axis itself.
using Runs = std::function<std::optional<Run>(const std::vector<const ir::Form*>& bounds)>;

// How segments know what is read; nothing is asked that is not given.
struct Known {
  Extrema extrema = {};
  Runs runs = {};
};

// Segments of the pipeline over core axis `axis` for a domain of `n`; Lets go to `before`. Pieces of a union share one loop, from
// the first live block to the last; blocks are full where one piece is (of pieces whose full blocks neither begin nor end together
// the first that has any is asked). `exact`: a ragged last block is partial unless a piece says otherwise; else it counts as full,
// and statements test the end themselves.
std::vector<kernel::Segment> segments(Frame& f, const ir::Comp& n, const std::vector<int>& core, const ir::Domain& domain, int axis,
                                      kernel::Block& before, bool exact = false, const Known& known = {});

// Does every piece of the domain bound core axis `axis` from both sides by values that are read? Then a run of it lives,
// of which nothing is known but that others have the rest: as a rule a short one.
bool is_run(const ir::Comp& n, const std::vector<int>& core, int axis);
// The core axes that the ends of such a run change with.
std::set<int> places_of_run(const ir::Comp& n, const std::vector<int>& core, int axis);

}  // namespace tang::lower
