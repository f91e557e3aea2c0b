// Members whose private point is solved by an equality of their domain.
#pragma once
#include "tang/plan/keyed.hpp"

namespace tang::lower {

using plan::Key;
// Nothing when the member has no such axis that is private, or when something else that decides it is.
std::optional<Key> solved(const ir::Graph& g, const plan::Member& m, const ir::Comp& n);

// Of a member that the planner has given a group of its own to be summed by key.
std::optional<Key> key_of_lone(const ir::Graph& g, const plan::Group& group, const plan::Member& m);
// Blocks of such a group: all terms in each workgroup, for as long a row of points as leaves enough workgroups.
void keyed_tiles(const plan::Group& group, const ir::Comp& n, const target::Target& t, std::vector<int64_t>& tile);

}  // namespace tang::lower
