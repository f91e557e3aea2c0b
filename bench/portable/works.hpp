// What is timed on every target: f32 graphs, how their inputs are filled, and a check of some results in f64.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tang/run/program.hpp"

namespace tang::bench {

using Arrays = std::map<std::string, std::vector<float>>;

struct Work {
  std::string name;                      // "matmul 1024", "gradient 512 materialized"
  ir::Graph graph;
  std::function<void(run::Options&)> how; // the schedule, where it is not the automatic one
  double flops = 0, bytes = 0;           // of the mathematics; inputs and outputs once
  // Largest error relative to the largest value, of results read back, from the inputs.
  std::function<double(const Arrays& in, const Arrays& out)> error;
  double most = 1e-5; // error allowed
  // Results that are read back: every step-th row of so many elements; 0: all. Reading is slow where the host sees a
  // device's own memory only.
  int64_t row = 0, step = 1;
};

// Works by the first words of their names; none: all. `heads` of the gradients, and of windows.
std::vector<Work> works(const std::vector<std::string>& wanted, int64_t heads);

} // namespace tang::bench
