// Counts every allocation of the process: malloc and its kin in front of the C library's.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace bench {
namespace {
std::atomic<uint64_t> count{0};
}
uint64_t allocations() { return count.load(); }
void counted() { count.fetch_add(1, std::memory_order_relaxed); }
}  // namespace bench

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

__attribute__((visibility("default"))) void* malloc(size_t n) { return bench::counted(), __libc_malloc(n); }
__attribute__((visibility("default"))) void* calloc(size_t n, size_t m) { return bench::counted(), __libc_calloc(n, m); }
__attribute__((visibility("default"))) void* realloc(void* p, size_t n) { return bench::counted(), __libc_realloc(p, n); }
__attribute__((visibility("default"))) void* memalign(size_t a, size_t n) { return bench::counted(), __libc_memalign(a, n); }
__attribute__((visibility("default"))) void* aligned_alloc(size_t a, size_t n) { return bench::counted(), __libc_memalign(a, n); }
__attribute__((visibility("default"))) int posix_memalign(void** p, size_t a, size_t n) {
  bench::counted();
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}
}
