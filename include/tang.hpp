// The one header of tang's C++ interface: the surface language, the oracle, programs and their verification.
// A room of the compiler itself sees of it what lies below that room.
#pragma once
#include "tang/base/number.hpp"
#include "tang/eval/oracle.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/recurrence.hpp"
#include "tang/ir/surface.hpp"
#if __has_include("tang/grad/surface.hpp")
#include "tang/grad/surface.hpp"
#endif
#if __has_include("tang/verify/verify.hpp")
#include "tang/verify/verify.hpp"
#endif

namespace tang {

using expr::Type;
using ir::always;
using ir::argmax;
using ir::argmin;
using ir::axes;
using ir::Axis;
using ir::axis;
using ir::Builder;
using ir::Carried;
using ir::carried;
using ir::Coords;
using ir::Extent;
using ir::Format;
using ir::Graph;
using ir::Guard;
using ir::Index;
using ir::MonoidSpec;
using ir::online_softmax;
using ir::Over;
using ir::Recurred;
using ir::Recurring;
using ir::Scalar;
using ir::Step;
using ir::Tensor;
using ir::welford;

// Elementwise functions, also to be handed to a layer.
using ir::elu;
using ir::gelu;
using ir::gelu_tanh;
using ir::relu;
using ir::sigmoid;
using ir::silu;
using ir::softplus;
using ir::square;
using ir::tanh;

#if __has_include("tang/grad/surface.hpp")
using diff::grad;
using diff::jvp;
using diff::Moved;
using diff::vjp;
#endif

#if __has_include("tang/verify/verify.hpp")
using device::Compiler;
using device::Cpu;
using run::Program;
#endif

} // namespace tang
