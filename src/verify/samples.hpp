// Made-up inputs, and what a standalone program's self-test expects of them, from the f64 oracle.
#pragma once
#include "tang/eval/oracle.hpp"
#include "tang/run/standalone.hpp"

namespace tang::verify {

// Random values for every input: reals in [-1, 1), indices inside what they select.
eval::Inputs random_inputs(const ir::Graph& g, uint64_t seed);

// A few elements of every output of the graph as written, on the inputs that `fillings` make; `threads` of
// the oracle.
std::vector<run::Expected> samples(const ir::Graph& written, const run::Derivation& d,
                                   const std::map<std::string, run::Filling>& fillings, int threads = 1);

} // namespace tang::verify
