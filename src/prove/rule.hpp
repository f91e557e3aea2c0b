// The simplifier's facts as printed rules.
#pragma once
#include "tang/prove/monoid.hpp"

namespace tang::prove {

// The whole table of expr/facts.hpp, several theorems a file: loading the prover costs more than most proofs.
std::vector<File> rule_files();

} // namespace tang::prove
