// The demonstration's programs: naive graphs, as a textbook writes them.
#pragma once
#include "tang/eval/oracle.hpp"

namespace tang::cli {

struct Naive {
  std::string name, size;
  ir::Graph graph;
  double flops = 0; // of the mathematics: multiply-adds count two
};

std::vector<Naive> demo_programs(int64_t scale);
// Random values for every input: reals in [-1, 1), indices inside what they select.
eval::Inputs random_inputs(const ir::Graph& g, uint64_t seed);

} // namespace tang::cli
