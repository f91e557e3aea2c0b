// What is verified where: every builder of models/, forward and backward, on a target, under every schedule that applies.
#pragma once
#include "tang/run/targets.hpp"

namespace tang::cli {

// A graph with all its inputs, and the largest error allowed.
struct Trial {
  ir::Graph graph;
  eval::Inputs inputs;
  double budget = 0;
};

// A way to schedule any graph.
struct Way {
  const char* name;
  run::Options (*of)(const ir::Graph& g, run::Options o); // from the target's own
};

// The first is what is chosen by itself; another one applies where it gives other kernels.
const std::vector<Way>& ways();
std::vector<std::string> builder_names();
// Each graph of a builder; backward: with the gradient of its real outputs, randomly weighted, by its real inputs.
std::vector<Trial> trials(const std::string& builder, bool backward);

// A builder on a target in one direction under one way.
struct Cell {
  std::string target, builder, way;
  bool backward = false;
  int kernels = 0, passed = 0, failed = 0; // buffers and outputs
  int refused = 0;                         // graphs that the schedule does not fit
  double worst = 0;                        // error of an output, of its largest value
  std::string why;                         // of a failure, or of the last refusal
  bool applies() const { return kernels > 0 || failed > 0; }
};

// Adds one graph to a cell; where the way gives the first one's kernels, or does not fit, nothing runs.
void verify_trial(const run::Opened& to, const Trial& t, const Way& way, int threads, Cell& c);
Cell verify_cell(const std::string& target, const run::Opened& to, const std::string& builder, bool backward, const Way& way,
                 int threads);
std::string json(const Cell& c);

// Rows of one value for each factor, of these many values each: any two values of two factors meet in some row. Greedy, always
// the same rows for the same sizes.
std::vector<std::vector<int>> pairwise(const std::vector<int>& sizes);

} // namespace tang::cli
