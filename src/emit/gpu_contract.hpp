// A contraction for a workgroup of many lanes.
#pragma once
#include "tang/emit/c_kernel.hpp"

namespace tang::emit {
void print_gpu_contract(Unit& u, const GpuDialect& d, const kernel::Contract& c);
int64_t points(const std::vector<TileAxis>& axes);
} // namespace tang::emit
