// Groups whose members fold different core axes, so that some result is added to from several blocks: which axes a
// workgroup walks, in which order, and where each member's result lives meanwhile.
#pragma once
#include <set>

#include "tang/lower/choose.hpp"

namespace tang::lower {

// Grid axes that some member folds, the one with the most elements last. Empty: every result is complete in its block.
std::vector<int> walked_axes(const ir::Graph& g, const plan::Group& group);
// The node's axis that lies along vectors: of a shared subterm one that is walked, because operands packed for it stay; of
// a member a private one. `otherwise` where there is none.
int columns_of_joint(const ir::Comp& n, const std::set<int>& points, const std::vector<int>& core, const std::vector<int>& walked,
                     int otherwise);
// Blocks of the core axes that are rows (`is_m`) or columns (`is_n`) of a contraction; the others are one element wide.
void joint_tiles(const ir::Graph& g, const plan::Group& group, const target::Target& t, const std::vector<char>& is_m,
                 const std::vector<char>& is_n, Choice& c);
// A block that is added to where its result lies is whole register blocks: what they hold beyond it would be added
// again. An Error where a schedule asks for others; a joint group's register blocks fit its blocks.
void need_whole_blocks(const ir::Graph& g, const plan::Group& group, const std::vector<char>& is_m,
                       const std::vector<char>& is_n, const Choice& c);
// Which walked axis is shared by how many workgroups: as many as `told`, else as few as keep all workers evenly busy.
void split_joint(const ir::Graph& g, const plan::Group& group, const target::Target& t, std::optional<int> told, Choice& c);

// The loops of one workgroup, outermost first: the walked axes, then the looped ones.
std::vector<int> loop_axes(const plan::Group& group, const Choice& c);
// How many of the loops run over points of the member: inside them its result is one block.
size_t depth_of(const std::vector<int>& loops, const plan::Member& m, const ir::Comp& n);
// Points of the member that loops inside that depth run over: it is added to again and again, in order.
bool returns(const std::vector<int>& loops, const plan::Member& m, const ir::Comp& n);
// Does the member fold the axis that several workgroups share?
bool is_partial(const Choice& c, const plan::Member& m, const ir::Comp& n);

}  // namespace tang::lower
