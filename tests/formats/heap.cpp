// Counts the heap's bytes in use, so that tests can bound what a reader allocates.
#include <malloc.h>

#include <atomic>
#include <new>

#include "formats/files.hpp"

namespace {
std::atomic<uint64_t> in_use{0}, peak{0};

void* counted(size_t size) {
  void* p = std::malloc(size ? size : 1);
  if (!p) throw std::bad_alloc();
  const uint64_t now = in_use += malloc_usable_size(p);
  uint64_t most = peak;
  while (now > most && !peak.compare_exchange_weak(most, now)) {}
  return p;
}
void drop(void* p) noexcept {
  if (!p) return;
  in_use -= malloc_usable_size(p);
  std::free(p);
}
}  // namespace

void* operator new(size_t size) { return counted(size); }
void* operator new[](size_t size) { return counted(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return counted(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p, const std::nothrow_t&) noexcept { drop(p); }
void operator delete(void* p) noexcept { drop(p); }
void operator delete[](void* p) noexcept { drop(p); }
void operator delete(void* p, size_t) noexcept { drop(p); }
void operator delete[](void* p, size_t) noexcept { drop(p); }

namespace tang::formats {
HeapPeak::HeapPeak() : before_(in_use) { peak = before_; }
uint64_t HeapPeak::bytes() const { return peak - before_; }
}  // namespace tang::formats
