// The Vulkan target: GLSL 4.50 for compute, one kernel a text, for glslang; class exact. Needs 64-bit, 16-bit and 8-bit
// integers in storage. Elementary functions are our own polynomials (Vulkan's promise 2^-11 for the sine): 3 ulp.
#pragma once
#include "tang/emit/dialect.hpp"

namespace tang::emit {

// Global memory k is storage buffer k of set 0. Workgroups are numbered along x, then y in rows of row_of_groups.
const GpuDialect& glsl_dialect();

} // namespace tang::emit
