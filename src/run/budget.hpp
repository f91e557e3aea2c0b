// How far off a program's outputs may be, before it runs.
#pragma once
#include "tang/kernel/rounding.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

// Of each output the bound of proofs/round for the order of operations that the kernels have.
std::map<std::string, kernel::Rounding> roundings(const Derivation& d, const Options& o);

// Inputs as a program holds them.
eval::Inputs rounded_to_formats(const ir::Graph& written, eval::Inputs inputs);
// How the emulator evaluates a derived graph: every buffer rounded to its format, the state of a fold to the one that its
// group keeps it in, everything else to f32.
eval::Options emulation(const plan::Plan& p, int threads = 1);

// The derived graph with its products as kernels have them that take operands in pieces: what the emulator evaluates.
ir::Graph in_pieces(const Derivation& d);

// Largest error of an array, relative to the largest finite value of the exact one; infinite where one is finite and the
// other is not, or a value that is not real differs.
double relative_error(const eval::Array& got, const eval::Array& exact);

// Inputs are rounded to their formats, buffers to theirs, everything else to f32, folds term by term: the emulator's
// word on the derived graph, against the graph as written in f64. Largest error relative to the largest value.
std::map<std::string, double> predicted_errors(const Derivation& d, const ir::Graph& written,
                                               const eval::Inputs& inputs, int threads = 1);

// Nothing, or why an output of this derivation may be further off than the budget of the options allows. What is
// predicted counts where there is a prediction, unless the bound of a sum without cancellation is enough; else the bound.
std::optional<Error> over_budget(const Derivation& d, const ir::Graph& written, const Options& o,
                                 const std::map<std::string, double>& predicted);

} // namespace tang::run
