#include "tang/device/cpu.hpp"

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <new>
#include <utility>

namespace tang::device {

namespace {
constexpr size_t band = 4096;
constexpr unsigned char mark = 0xa5;
constexpr size_t huge = size_t(2) << 20;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
} // namespace

Buffer::Buffer(size_t bytes, bool guards) : bytes_(bytes), guards_(guards) {
  const size_t around = guards ? band : 0, all = padded(bytes) + 2 * around;
  const size_t align = all >= huge ? huge : 4096;
  auto* p = static_cast<unsigned char*>(::operator new(all ? all : 64, std::align_val_t(align)));
  if (all >= huge) madvise(p, all, MADV_HUGEPAGE); // a hint: fewer misses of the page table cache
  std::memset(p, mark, around);
  std::memset(p + around, 0, bytes);
  std::memset(p + around + bytes, mark, all - around - bytes);
  data_ = p + around;
}

Buffer::~Buffer() {
  if (!data_) return;
  const size_t around = guards_ ? band : 0, all = padded(bytes_) + 2 * around;
  ::operator delete(static_cast<char*>(data_) - around, std::align_val_t(all >= huge ? huge : 4096));
}

Buffer::Buffer(Buffer&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), bytes_(o.bytes_), guards_(o.guards_) {}

Buffer& Buffer::operator=(Buffer&& o) noexcept {
  std::swap(data_, o.data_), std::swap(bytes_, o.bytes_), std::swap(guards_, o.guards_);
  return *this;
}

void Buffer::poison() { std::memset(data_, 0xff, bytes_); }

std::optional<int64_t> Buffer::trespass() const {
  if (!guards_) return std::nullopt;
  const auto* p = static_cast<const unsigned char*>(data_);
  for (size_t i = 1; i <= band; ++i)
    if (p[-int64_t(i)] != mark) return -int64_t(i);
  for (size_t i = bytes_; i < padded(bytes_) + band; ++i)
    if (p[i] != mark) return int64_t(i);
  return std::nullopt;
}

double Cpu::seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace tang::device
