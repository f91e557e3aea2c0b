// The WebGPU target: WGSL, one kernel a text; class finite: infinities are the largest f32, NaN is never promised.
// Integers have 32 bits: the kernel was judged by kernel::beyond_32_bits. Elementary functions are our own.
#pragma once
#include "tang/emit/dialect.hpp"

namespace tang::emit {

// `main`; global memory k is storage buffer k of group 0, all read_write, since parts of one buffer are bound together.
// i64 is stored as two words; formats under 32 bits are packed in words, written ones atomically. Workgroups are numbered
// along x, then y in rows of row_of_groups.
const GpuDialect& wgsl_dialect();

} // namespace tang::emit
