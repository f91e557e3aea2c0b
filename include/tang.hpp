// The one header of tang's C++ interface: the surface language and the oracle; schedules and programs join as they land.
#pragma once
#include "tang/eval/oracle.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/surface.hpp"

namespace tang {

using ir::Axis;
using ir::axes;
using ir::axis;
using ir::Builder;
using ir::Extent;
using ir::Format;
using ir::Graph;
using ir::Guard;
using ir::Index;
using ir::MonoidSpec;
using ir::Scalar;
using ir::Tensor;

}  // namespace tang
