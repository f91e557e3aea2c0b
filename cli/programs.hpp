// The demonstration's programs: naive graphs, as a textbook writes them.
#pragma once
#include "tang/verify/random_inputs.hpp"

namespace tang::cli {

struct Naive {
  std::string name, size;
  ir::Graph graph;
  double flops = 0; // of the mathematics: multiply-adds count two
};

std::vector<Naive> demo_programs(int64_t scale);
using verify::random_inputs;

} // namespace tang::cli
