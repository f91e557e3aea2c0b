// The same case in another form: what it computes follows from what the first computes, so that two runs
// judge each other (metamorphic relations: Chen, Cheung and Yiu 1998).
#pragma once
#include "tang/fuzz/judge.hpp"

namespace tang::fuzz {

enum class Variant : uint8_t {
  none,
  splits,   // folds divided into another number of parts
  tiles,    // blocks of other sizes
  permuted, // inputs stored with their dimensions the other way round
  batched   // one more axis, first everywhere, over which the whole graph is repeated with other values
};

const char* word(Variant v);
constexpr int64_t batch_of_many = 3;

// The other form, bound; nothing where it has none. Its inputs hold the first's values; those of a batch hold
// them in its first part, others after.
std::optional<Case> varied(const Case& c, Variant v);
// Inputs of part b of a batch, for the case itself.
eval::Inputs part_of_batch(const Case& c, int64_t b);
// Where the two disagree. A batch has the bits of its parts, run one at a time (`parts`: their outputs);
// every other form is judged as the case is: bits where it holds integers, else the error bound of the graph
// that ran.
std::vector<Fault> disagreement(Variant v, const Reference& first, const Case& other,
                                const run::Derivation& d, const Outputs& got,
                                const std::vector<Outputs>& parts, Judged& count);

} // namespace tang::fuzz
