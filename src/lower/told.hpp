// What a schedule's blocks must fit, with the reason and what would: an Error each.
#pragma once
#include "tang/lower/choose.hpp"

namespace tang::lower {

// Core axes that a contraction takes one element at a time (`one`).
void need_single(const ir::Graph& g, const plan::Group& group, const std::vector<char>& one, const Choice& c);
// A map is written once, after the loops: what it has of a block must be all there is.
void need_whole_maps(const ir::Graph& g, const plan::Group& group, const Choice& c);
// Operands lie in panels as wide as a register block: a block of a side's columns begins at a panel.
void need_columns(const ir::Graph& g, const plan::Group& group, const Choice& c);

} // namespace tang::lower
