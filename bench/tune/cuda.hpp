// The tuning benchmarks of an NVIDIA GPU: what they run, as values.
#pragma once
#include "bench.hpp"
#include "tang/run/cuda.hpp"

namespace bench {

struct CudaProblem {
  std::string name, group; // group: class, race, sound
  ir::Graph graph;
  bool matrix = true;      // on the target with matrix instructions
  bound::Keys keys = {};   // of tensors read by index: rows that the inputs name
  double budget = 1e-2;
  size_t most = 1;         // candidates
};

// Layers of a mixture of experts at 1, 8 and 48 tokens: products that read a matrix once, and what follows them.
std::vector<CudaProblem> class_problems();
std::vector<CudaProblem> cuda_race_problems(); // matmul and attention at four sizes each
std::vector<CudaProblem> cuda_sound_problems(); // random sizes
// What the space says of every candidate of the main step, by what is shown of it. Steps beside it are not in it.
std::map<std::string, double> estimates(const CudaProblem& p, const tune::Machine& m);
int cuda_report(const std::string& file, const std::vector<std::string>& parts);

} // namespace bench
