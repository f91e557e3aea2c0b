// Blocks of kernels in tensor form for subgroups: which there are, and what a rule says of them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tang/lower/tensor_price.hpp"

namespace tang::lower {

struct SubgroupBlock {
  target::Roles roles;
  int64_t columns = 0, loop = 0; // of a block; terms of a slot
  double seconds = 0;            // what the rule says
};

// Of a sum of products, the fastest first. `row_blocks`: how many blocks of so many rows there are.
std::vector<SubgroupBlock> subgroup_products(const Product& p, const target::Target& t,
                                             const std::function<int64_t(int64_t)>& row_blocks);

// Of sums with weights, from a contraction of so many terms and columns at most; blocks in the order of `like`.
std::vector<SubgroupBlock> subgroup_weighted(int64_t widest, const target::Roles& like);

// For people. `on_grid`: the columns are blocks of the grid, of `column_tile`; else the loop's are a contraction's.
std::string text_of(const target::Roles& r, bool on_grid, int64_t column_tile, int64_t loop);

} // namespace tang::lower
