// The scale of a loss, from the emulator's word on what its gradients do in narrow storage.
#pragma once
#include "tang/tune/precision.hpp"

namespace tang::tune {

// What a buffer in a format narrower than f32 holds: of `values`, how many overflowed, and how many that are
// not 0 would be stored as 0.
struct StoredRange {
  std::string label;
  ir::Format format = ir::Format::f32;
  double largest = 0; // magnitude, before it is stored
  int64_t values = 0, overflowed = 0, vanished = 0;
};

// Of every narrow buffer of a plan, evaluated on these inputs: `emulated` as the program rounds them, else in
// f64, where nothing overflows or vanishes but is counted as if it were stored.
std::vector<StoredRange> stored_ranges(const run::Derivation& d, const ir::Graph& written,
                                       const eval::Inputs& inputs, bool emulated, int threads = 1);

struct ScaleChoice {
  double scale = 1;
  std::string binds;              // the buffer that needs no larger one
  int64_t overflowed = 0;         // values predicted to overflow at this scale: 0, unless none helps
  double vanished = 0;            // share of what is proportional to the scale that is stored as 0,
  double vanished_unscaled = 0;   // and without a scale
};

// The largest power of two at which no stored value comes nearer than `headroom` to overflow, up to 2^40: the
// program is emulated on these inputs at it, and at half of it while something overflows. `state` names the
// scale (models::scaled). A program that stores nothing narrow gets 1. Throws Error: no such input.
ScaleChoice choose_scale(const run::Derivation& d, const ir::Graph& written, eval::Inputs inputs,
                         const std::string& state = "loss.scale", double headroom = 8, int threads = 1);

} // namespace tang::tune
