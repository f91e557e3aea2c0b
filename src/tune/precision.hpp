// How far a schedule's results are from the real ones, and storage in narrower formats within a budget.
#pragma once
#include "tang/tune/trial.hpp"

namespace tang::tune {

// Largest error of an output relative to its largest value.
struct ErrorBudget {
  double all = 1e-4;
  std::map<std::string, double> of = {}; // outputs with a budget of their own

  double at(const std::string& output) const {
    auto it = of.find(output);
    return it == of.end() ? all : it->second;
  }
};

// Inputs as a program holds them.
eval::Inputs rounded_to_formats(const ir::Graph& written, eval::Inputs inputs);
// How the emulator evaluates a plan's graph: every buffer rounded to its format, everything else to f32.
eval::Options emulation(const plan::Plan& p, int threads = 1);

// The emulator's word: the derived graph with every buffer rounded to its format, everything else to f32,
// folds term by term in f32, against the graph as written in f64. Inputs are given as bound; they are rounded
// to their formats.
std::map<std::string, double> predicted_errors(const run::Derivation& d, const ir::Graph& written,
                                               const eval::Inputs& inputs, int threads = 1);
// A derivation, or a refusal that names the output, what is predicted for it and its budget.
Result<run::Derivation> within(const ErrorBudget& b, const ir::Graph& written, const run::Options& o,
                               const eval::Inputs& inputs);

// Nodes whose stored values may be narrowed: real ones that depend on a real input (so no count, no iota, no
// rotary phase), are no output, and are not read where a rounding may be decisive: by comparisons, rounding
// to whole numbers, as an angle, or by folds that also keep indices.
std::vector<ir::NodeId> narrowable(const plan::Plan& p);

// The schedule with every such value stored in this format: activations and their adjoints, not weights.
schedule::Schedule narrowed(const run::Derivation& d, schedule::Schedule s, ir::Format f);

struct Move {
  std::string group, fields; // which buffer or fold, and how
  std::string result;        // "kept", or why not
  double predicted = 0;      // largest error of the outputs
  Sample before, after;
};

struct Precision {
  schedule::Schedule schedule;
  std::vector<Move> moves;
};

// One move at a time from `b.options.schedule`: a buffer in bf16 or f16, a fold in parts. Kept when the
// prediction and the measured results stay within the budget and the program is faster beyond doubt.
Precision tune_precision(const Bench& b, const ErrorBudget& budget, double seconds_each = 0.05);

} // namespace tang::tune
