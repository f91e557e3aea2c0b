// The emulator's word on narrow storage and narrow accumulation beside what a device does, in the order that
// runs.
#pragma once
#include <cmath>

#include "tang/tune/precision.hpp"

namespace tang::tune {

// Folds whose state may be narrow: real ones that are not decisive (see narrowable) and depend on a real
// input.
std::vector<ir::NodeId> accumulable(const plan::Plan& p);
// The schedule with every such fold's state in this format; `parts` > 1: folds over at least `long_sum` terms
// in so many.
inline constexpr int64_t long_sum = 64;
schedule::Schedule accumulated(const run::Derivation& d, schedule::Schedule s, ir::Format f, int parts = 1);

// One output of one program in narrow formats. Errors are relative to the output's largest value.
struct FormatRow {
  std::string output;
  double predicted = 0; // by the emulator, in the order that the kernels have
  double measured = 0;  // on the device
  double bound =
      0;          // of what f32 bodies alone may add, for these inputs (verify::error_bounds); infinite: none
  int narrow = 0; // buffers or states in the format

  // The prediction is of the formats, not of f32: then it must be within a factor of two, and elsewhere no
  // more may happen than what is predicted and what f32 may add. Without a bound, what is predicted must be
  // far above a unit of f32.
  bool decides() const { return predicted >= (std::isfinite(bound) ? 4 * bound : 0x1p-18); }

  bool ok() const;
};

// Derives `written` with these options, runs it on the backend, compares. No row of outputs that are not
// real, and none where no buffer or state is narrow.
std::vector<FormatRow> format_rows(const ir::Graph& written, const run::Options& o, const run::Backend& b,
                                   const eval::Inputs& inputs, int threads = 1);

} // namespace tang::tune
