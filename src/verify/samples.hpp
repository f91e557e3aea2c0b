// What a standalone program's self-test expects of its made-up inputs, from the f64 oracle.
#pragma once
#include "tang/run/standalone.hpp"
#include "tang/verify/random_inputs.hpp"

namespace tang::verify {

// A few elements of every output of the graph as written, on the inputs that `fillings` make; `threads` of
// the oracle.
std::vector<run::Expected> samples(const ir::Graph& written, const run::Derivation& d,
                                   const std::map<std::string, run::Filling>& fillings, int threads = 1);

} // namespace tang::verify
