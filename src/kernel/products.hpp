// Sums of products with few rows, for subgroups that multiply small matrices of 16 bits: operands go from memory to
// registers as they lie, no workgroup is wider than a few columns, and subgroups share the terms.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/target/target.hpp"

namespace tang::kernel {

// Terms that a subgroup multiplies at once: four lanes have a run of 16 bytes of each row.
constexpr int64_t terms_at_once = 32;

// The reads of one component's factors: what moves with the fold's first kept axis, and with its second.
struct Factors {
  int first = -1, second = -1;
};

// The factors of each component, where every component is a sum of products of two arrays of one format of 16 bits, each
// along one of the first two kept axes, in aligned runs along the last folded one. Else nothing.
std::optional<std::vector<Factors>> matrix_factors(const Kernel& k, const Fold& f);

// `sums` products of `rows` x `terms` by `columns` x `terms` in each of `blocks` blocks of the grid; columns lie next to each
// other in a block's results.
struct FewRows {
  int64_t rows = 0, columns = 0, terms = 0, sums = 1, blocks = 1;
};

// How the terms of a block are shared.
struct Share {
  int64_t cluster = 1; // workgroups
  int64_t parts = 0;   // subgroups of one; 0: no way
  double seconds = 0;  // without what every kernel takes
};

// The cheapest way on this target.
Share share_of(const FewRows& x, const target::Target& t);

// Workgroups of a small grid that share a processor, all of them under way at once; 0: the grid is not small.
int64_t workgroups_of_a_worker(int lanes, int64_t workgroups);
// Of a lane that keeps `sums` in registers: words of 16 bytes that may be on their way at once; and rounds of a loop whose
// `loads` words each are so, in equal shares.
int64_t words_at_once(int lanes, int64_t workgroups, int64_t sums);
int64_t rounds_at_once(int64_t rounds, int64_t loads, int64_t words);

// The kernel with its folds shared by subgroups, each of which has a part of the terms, and joined in their order; nothing
// where a statement is no such fold over one block of rows and columns, nor a map of its results.
std::optional<Kernel> deal_products(const Kernel& k, const target::Target& t);

} // namespace tang::kernel
