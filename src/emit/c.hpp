// The C target: prints kernels as C11 with GNU vector extensions, the same bits under gcc 12 and clang 14 and
// later.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tang/kernel/kernel.hpp"

namespace tang::emit {

struct COptions {
  // f32 lanes of a vector: 16, 8 or 4 (a f64 kernel has half as many); or 1, the scalar row: plain C11 without
  // vector types and without headers. The kernel is the same; the printer alone leaves its vectors out.
  int lanes = 16;
  int64_t stream_bytes =
      int64_t(24) << 20; // outputs at least this large bypass the caches where they are written whole
};

// void NAME(void* const* args, int64_t first, int64_t last, void* scratch): runs workgroups [first, last) of
// the flat grid (outermost axis slowest). `args` are the global memories in order, `scratch` is private to
// the call, aligned to 64 bytes and of scratch_bytes. The text needs c_prelude of the same options above it.
std::string c(const kernel::Kernel& k, const COptions& o = {});
std::string c_prelude(const COptions& o = {});
// One translation unit: the prelude, then every kernel once (kernels of one name must be equal).
std::string c_unit(const std::vector<const kernel::Kernel*>& kernels, const COptions& o = {});
// The same in several units of about equal length, for compilers that run side by side.
std::vector<std::string> c_units(const std::vector<const kernel::Kernel*>& kernels, int parts,
                                 const COptions& o = {});
int64_t scratch_bytes(const kernel::Kernel& k);
const char* element_type(kernel::Format f); // the C type that holds one element in memory

} // namespace tang::emit
