// The OpenCL target: OpenCL C 1.2 for kernels legalized for a workgroup of many lanes; class exact. Elementary
// functions are OpenCL's own (exp2, log2: 3 ulp; sin: 4; atan2: 6; division and square root: 2.5 and 3).
#pragma once
#include "tang/emit/dialect.hpp"

namespace tang::emit {

// kernel void NAME(one pointer a global memory, in order): along x, a workgroup of `lanes`. Tiles are the kernel's own.
const GpuDialect& opencl_dialect(bool f64); // f64: the device has cl_khr_fp64

} // namespace tang::emit
