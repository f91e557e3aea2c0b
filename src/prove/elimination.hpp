// Max eliminations as printed terms: what lies between a stabilizing max and the roots, for Coq to run the
// degree calculus on.
#pragma once
#include "tang/grad/gradient.hpp"
#include "tang/prove/fusion.hpp"

namespace tang::prove {

// A graph with its gradient beside it: of every real output, weighted by inputs of its own, with respect to
// every real input. Refused as `diff::gradient` does.
struct Gradient {
  Compile compile; // outputs: the graph's own and the gradients
  std::vector<diff::Proof> proofs;
};

Result<Gradient> gradient_of(const Compile& c);

struct Eliminations {
  std::vector<File> files;          // each distinct proof once
  int graphs = 0, proofs = 0;       // graphs with an elimination; their proofs, before equal ones are dropped
  std::vector<std::string> refused; // proofs that have no printed form, and why
};

Eliminations eliminations_of(const std::vector<Gradient>& gradients);

} // namespace tang::prove
