// The CPU as a device: bytes, launches, clocks.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "tang/device/pool.hpp"

namespace tang::device {

// Zeroed bytes, aligned to 64. With guards, a band of known bytes lies on either side.
class Buffer {
public:
  explicit Buffer(size_t bytes, bool guards = false);
  ~Buffer();
  Buffer(Buffer&& o) noexcept;
  Buffer& operator=(Buffer&& o) noexcept;

  void* data() const { return data_; }

  template <class T> T* as() const { return static_cast<T*>(data_); }

  size_t size() const { return bytes_; }

  void poison(); // every byte 0xff: NaN in every real format
  // Offset of the first byte outside that was written (negative: before the start), or nothing.
  std::optional<int64_t> trespass() const;

private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  bool guards_ = false;
};

class Cpu {
public:
  explicit Cpu(int workers = 1) : pool_(std::make_unique<Pool>(workers)) {}

  int workers() const { return pool_->workers(); }

  Buffer allocate(size_t bytes, bool guards = false) const { return Buffer(bytes, guards); }

  void reserve(int64_t scratch_bytes) { pool_->reserve(scratch_bytes); }

  void launch(KernelFunction f, void* const* args, int64_t workgroups, int64_t scratch_bytes) {
    pool_->launch(f, args, workgroups, scratch_bytes);
  }

  static double seconds(); // a clock that never goes back

private:
  std::unique_ptr<Pool> pool_;
};

} // namespace tang::device
