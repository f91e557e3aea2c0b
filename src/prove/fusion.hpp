// Fusion steps as printed terms: what the rule `fuse` really did, for Coq to do again.
#pragma once
#include <set>

#include "tang/prove/monoid.hpp"
#include "tang/rewrite/rules.hpp"

namespace tang::prove {

// A graph under a name that may be part of a file's and of a Coq name.
struct Compile {
  std::string name;
  ir::Graph graph;
};

struct Fusions {
  std::vector<File> files;            // each distinct step once
  std::vector<Compile> optimized;     // the graphs after all steps
  int compiles = 0, steps = 0;        // compiles that fuse; their steps, before equal ones are dropped
  int dropped = 0;                    // bounds that the steps left out, each with its certificate
  std::vector<std::string> refused;   // steps that have no printed form, and why
  std::vector<std::string> too_large; // steps whose terms Coq cannot write out
};

// Optimizes each graph with the rules of the driver and prints every step of `fuse`, each distinct text once.
Fusions fusions_of(const std::vector<Compile>& compiles);

} // namespace tang::prove
