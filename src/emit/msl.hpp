// The Metal target: MSL for kernels legalized for a workgroup of many lanes; class finite: infinities are the largest
// f32. Elementary functions are Metal's own of namespace precise (exp2, log2, sin: 4 ulp; atan2: 6).
#pragma once
#include "tang/emit/dialect.hpp"

namespace tang::emit {

// kernel void NAME: global memory k is buffer k, tiles lie in threadgroup memory 0, of shared_bytes. One dimension.
const GpuDialect& msl_dialect();

} // namespace tang::emit
