// Everything that the compiler relies on, as Coq files: `tang export proofs DIR`, checked by `make -C proofs
// exported`.
#pragma once
#include "tang/prove/fusion.hpp"

namespace tang::prove {

struct Exported {
  std::vector<File> files;
  int monoids = 0, rules = 0, fusions = 0; // theorems
  int compiles = 0, steps = 0;             // behind the fusions: compiles that fuse, and their steps
  std::vector<std::string> refused;        // what has no printed form, and why: never silent
};

// The monoid table, the table of scalar facts, and the fusion steps of these compiles.
Exported exported(const std::vector<Compile>& compiles);

} // namespace tang::prove
