// The traffic bounds of optimized graphs as printed certificates of their linear programs.
#pragma once
#include "tang/prove/fusion.hpp"

namespace tang::prove {

struct Certificates {
  std::vector<File> files;    // each distinct certificate once
  int graphs = 0, bounds = 0; // graphs with a certificate; their certificates, before equal ones are dropped
  std::vector<File> covers;   // the inequalities that the printed numbers rest on, each once
  std::map<std::string, int> unprinted; // bounds without a printed form: why -> how many
};

// One certificate a kernel, as it stands and chained, for a fast memory of this many bytes; and the
// inequality of the best cover of each model, where the bound is more than the compulsory count.
Certificates certificates_of(const std::vector<Compile>& optimized, int64_t memory);

} // namespace tang::prove
