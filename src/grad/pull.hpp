// What flows back along one read: a sum over the reader's points, as a comprehension over the source's
// points.
#pragma once
#include "tang/grad/linear.hpp"

namespace tang::diff {

// sum of `term` over { points and folds of `y` where y exists and `when` holds : read `arg` is at x }, for
// every coordinate x of what the read reads. `term` and `when` are over y. Appends nodes to g; throws
// Refused.
//   a coordinate that picks an axis renames it; one with a coefficient +-1 is solved for that axis, whose
//   range joins the domain; any other (strides, diagonals, gathers) is an equality in the domain.
// A map when it exists exactly where the source does; else a sum, 0 where nothing flows.
Port pull(Graph& g, const Comp& y, int arg, Id term, Id when, const std::string& name, Where where);

} // namespace tang::diff
