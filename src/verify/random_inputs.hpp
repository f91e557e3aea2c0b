// Made-up inputs.
#pragma once
#include "tang/eval/oracle.hpp"

namespace tang::verify {

// Random values for every input: reals in [-1, 1), indices inside what they select.
eval::Inputs random_inputs(const ir::Graph& g, uint64_t seed);

} // namespace tang::verify
