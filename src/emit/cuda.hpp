// The CUDA target: prints kernels that were legalized for a workgroup of many lanes as CUDA C++ for NVRTC or
// nvcc. Accuracy of the elementary functions in f32: CUDA's own exp2f and sinf (2 ulp), log2f (1 ulp), atan2f
// (3 ulp), a correctly rounded sqrt and division; compile with --fmad=false so that only a contraction fuses.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tang/emit/dialect.hpp"

namespace tang::emit {

// extern "C" __global__ void NAME(one pointer a global memory, in order): one block a workgroup, of `lanes`
// threads, along x; more than 2^31 - 1 workgroups take turns. Tiles lie in dynamic shared memory:
// cuda_shared_bytes of it.
std::string cuda(const kernel::Kernel& k);
const GpuDialect& cuda_dialect();
std::string cuda_prelude();
// One translation unit: the prelude, then every kernel once (kernels of one name must be equal).
std::string cuda_unit(const std::vector<const kernel::Kernel*>& kernels);
int64_t cuda_shared_bytes(const kernel::Kernel& k);
int cuda_lanes(const kernel::Kernel& k);      // of a workgroup
int64_t cuda_blocks(const kernel::Kernel& k); // of a launch

} // namespace tang::emit
