// Everything that the compiler relies on, as Coq files: `tang export proofs DIR`, checked by `make -C proofs
// exported`.
#pragma once
#include "tang/prove/certificate.hpp"
#include "tang/prove/elimination.hpp"

namespace tang::prove {

struct Exported {
  std::vector<File> files;
  std::string counts;               // of theorems, and of what is behind them
  std::vector<std::string> refused; // what has no printed form, and why: never silent
  std::vector<std::string> omitted; // what this export does not claim to cover, and why
  int monoids = 0, rules = 0;       // theorems of the two tables
};

// The monoid table, the table of scalar facts; and of these compiles and of their gradients the fusion steps,
// the max eliminations and the certificates of the traffic bounds.
Exported exported(const std::vector<Compile>& compiles);

} // namespace tang::prove
