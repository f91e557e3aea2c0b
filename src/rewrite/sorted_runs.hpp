// Sorted keys lie in runs: the terms of one key are those from where the smaller keys end to where it ends.
#pragma once
#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

// first[.., x]: how many keys of a row are smaller than x - c, for x in 0 .. places. Sorted keys equal to
// x - c are those of first[.., x] <= t < first[.., x + 1]. Nothing where c is symbolic.
std::optional<NodeId> first_of_runs(Graph& g, Port keys, const ir::Extent& c, const ir::Extent& places,
                                    Where where);

// The keys of `row` equal to `place` - c, along `axis` of n: two bounds of `at`, of what n then reads of
// first_of_runs(..).
void bound_run(Comp& n, ir::Conj& at, NodeId first, std::vector<Form> row, const Form& place, int axis);

} // namespace tang::rewrite
