// Several arguments in one: where the memories of a kernel may not overlap, or a kernel may name few.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// Global `drop` lies where global `keep` lies. Refused when they are not laid out alike.
Result<Kernel> merged(const Kernel& k, int keep, int drop);

struct Part {
  int memory;
  int64_t at; // its first element within the whole
};

// Globals of one format that lie in one allocation become a single flat memory of `size` elements, in the place of the
// first of them. No ref of theirs is checked (a flat coordinate could not be).
Kernel joined(const Kernel& k, const std::vector<Part>& parts, int64_t size);
bool checks(const Kernel& k, int memory); // whether some ref of it is checked

} // namespace tang::kernel
