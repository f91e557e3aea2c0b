// Runs that were measured, as the tuning benchmarks write them down (docs/results/tune-h200): their floors
// can be computed again without the machine.
#pragma once
#include "tang/tune/cost.hpp"
#include "tang/tune/trial.hpp"

namespace tang::tune {

struct Measured {
  std::string group, problem, schedule; // group: of problems; of kernels of a library its name
  bool cold = false;                    // nearer levels held nothing
  size_t candidate = 0;                 // of the space, in its order
  Sample time;
  double error = 0;
  std::vector<Work> works; // of each step
};

std::string as_json(const Work& w);
Work work_in(const std::string& json); // fields that it lacks are 0; no JSON: none

// Rows of a file of `bench_tune_cuda run` or of cuda_peers.py; none of any other. Of a library's kernel only
// the work is known: one launch, each operand read once, the operations of the definition.
Result<std::vector<Measured>> measured_of(const std::string& json, const Machine& m);
// What `bench_tune_cuda count` counted of these rows' kernels takes the place of what their file says:
// workgroups, and what they start. How many rows it knows.
Result<int> put_counts(std::vector<Measured>& rows, const std::string& json);

// Steps run one after the other: their floors add up. What the first one reads may be cold; a later one may
// find what the one before it left. The terms are those of the step that takes longest.
Time floor(const Measured& r, const Machine& m);

} // namespace tang::tune
