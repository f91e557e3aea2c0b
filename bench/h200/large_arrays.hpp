// Kernels on arrays of more than 2^31 elements: offsets that 32 bits do not hold.
#pragma once
#include <functional>
#include <string>

#include "tang/device/cuda.hpp"

namespace tang::bench {

// A map, a fold along aligned and along ragged rows, a product and an attention by warpgroups, each with an input and an
// output of more than 2^31 bf16 elements, against the oracle on the first, the last and random items of the leading axis;
// outputs are poisoned first, run twice, and searched for elements that were not written; guard bands around all arrays.
// One line each through `say`; how many passed and failed are added. On a device with less memory: 'not present', and why.
void verify_large(device::CudaCompiler& compiler, const std::shared_ptr<device::Cuda>& gpu,
                  const std::function<void(const std::string&)>& say, int& passed, int& failed);

} // namespace tang::bench
