// Role programs as CUDA C++ for sm_90a: one statement, one spelling.
#pragma once
#include <string>

#include "tang/kernel/roles.hpp"

namespace tang::emit {

// extern "C" __global__ void NAME(tensor maps by value, then pointers, then int* queue), of fields.threads()
// threads and shared_bytes of dynamic shared memory; `queue` is 2 + tiles * math zeroed integers that the
// launch leaves zeroed; after it come float* parts of a split loop (tiles * split * math * part_values). The
// text needs cuda_prelude above it, and may stand beside others of its kind.
std::string cuda_roles(const kernel::role::Program& p, const std::string& name);

} // namespace tang::emit
