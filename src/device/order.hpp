// What kernels that are started one after another must wait for, where a device can be told.
#pragma once
#include <cstddef>
#include <vector>

namespace tang::device {

// Bytes [begin, end) of a region that a kernel reads or writes.
struct Touch {
  const void* region = nullptr;
  size_t begin = 0, end = 0;
  bool written = false;
};

// For each kernel, in the order in which they are started: the earlier ones that write what it touches or touch what it
// writes, but for those that one of the others waits for. Ascending.
std::vector<std::vector<size_t>> waits(const std::vector<std::vector<Touch>>& kernels);

} // namespace tang::device
