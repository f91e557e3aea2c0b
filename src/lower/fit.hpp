// Blocks that fit a workgroup's own memory.
#pragma once
#include <functional>

#include "tang/lower/choose.hpp"

namespace tang::lower {

// Halves blocks, each time the one that saves most, until `bytes` of the choice is at most `limit` or nothing helps.
// Blocks of more than a register block stay whole register blocks, blocks of
// panels whole panels.
Choice fit(Choice c, const plan::Group& group, int64_t limit, const std::function<int64_t(const Choice&)>& bytes);

// Vectors of a register block that is to be narrower: as many as divide it, so that blocks of whole panels stay so.
int fewer_vectors(int vectors);
// The schedule with register blocks of the group that are so wide, where it says how wide they are.
schedule::Schedule with_vectors(schedule::Schedule s, const ir::Graph& g, const plan::Group& group, int vectors);

// Elements of an axis of `e` in a block, at most so many, with little left over: of 3 one at a time rather than 2, of 7
// blocks of 4 rather than 6.
int64_t even_tile(int64_t e, int64_t most);
// Terms over several axes, a batch of sequences say: the outermost is walked in blocks, so that panels of both sides
// stay near.
void cut_depth(const plan::Group& group, const std::vector<char>& is_k, std::vector<int64_t>& tile);
// Every worker gets some points: the outermost blocked axis is shrunk. Lanes of a map, and of columns, wait for memory: a worker has
// several workgroups of them. `runs`: the core axis of which lanes read neighbours, or -1.
void enough_blocks(const plan::Group& group, const target::Target& t, bool is_map, int runs, std::vector<int64_t>& tile);

// Columns of a block of a contraction, in whole panels, of which there are several anyway: its f32 results, the rows'
// operand and one panel take three quarters of `memory` bytes, 256 at least.
int64_t columns_that_stay(const plan::Group& group, int64_t memory, int64_t panel, const std::vector<char>& is_m,
                          const std::vector<char>& is_k, const std::vector<int64_t>& tile);

// The columns' axis, if workgroups one after the other read less again when they go over all rows for a block of columns
// than over all columns for a block of rows: an operand is read once a block of the other. -1: they do not.
int outer_columns(const plan::Group& group, const std::vector<char>& is_m, const std::vector<char>& is_n,
                  const std::vector<int64_t>& tile);

}  // namespace tang::lower
