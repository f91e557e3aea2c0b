// How far a schedule's results are from the real ones, and storage in narrower formats within a budget.
#pragma once
#include "tang/run/budget.hpp"
#include "tang/tune/trial.hpp"

namespace tang::tune {

using run::emulation;
using run::ErrorBudget;
using run::predicted_errors;
using run::rounded_to_formats;

// A derivation, or a refusal that names the output, what is predicted for it from these inputs, its budget
// and the proved bound.
Result<run::Derivation> within(const ErrorBudget& b, const ir::Graph& written, const run::Options& o,
                               const eval::Inputs& inputs);

// One a node: its value depends on a real input (so it is no count, no iota, no rotary phase), and no reader
// decides anything by it: no comparison, rounding to whole numbers, angle, or fold that also keeps indices.
std::vector<char> undecided(const plan::Plan& p);

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
