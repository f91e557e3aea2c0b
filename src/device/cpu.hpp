// The CPU as a device: bytes, launches, clocks.
#pragma once
#include "tang/device/compiler.hpp"
#include "tang/device/device.hpp"
#include "tang/device/pool.hpp"

namespace tang::device {

// Zeroed bytes, aligned to 64. With guards, a band of known bytes lies on either side.
class Buffer : public Region {
public:
  explicit Buffer(size_t bytes, bool guards = false);
  ~Buffer() override;
  Buffer(Buffer&& o) noexcept;
  Buffer& operator=(Buffer&& o) noexcept;

  void* data() const override { return data_; }

  size_t size() const override { return bytes_; }

  void write(size_t to, const void* from, size_t bytes) override;
  void read(void* to, size_t from, size_t bytes) const override;
  void fill(size_t at, unsigned char byte, size_t bytes) override;
  std::optional<int64_t> trespass() const override;

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

// The CPU as programs see it: C text in, workgroups of one lane shared out over the pool.
class CpuDevice : public Device {
public:
  CpuDevice(std::shared_ptr<Compiler> compiler, std::shared_ptr<Cpu> cpu)
      : compiler_(std::move(compiler)), cpu_(std::move(cpu)) {}

  std::shared_ptr<Region> allocate(size_t bytes, bool guards) override;
  void copy(const Slice& to, const Slice& from) override;
  std::shared_ptr<Code> compile(const Unit& unit) override;
  // Kernels of a library that was compiled before, perhaps with those of other programs.
  std::shared_ptr<Code> load(std::shared_ptr<Library> library, const std::vector<Entry>& entries);

  void wait() override {}

private:
  std::shared_ptr<Compiler> compiler_;
  std::shared_ptr<Cpu> cpu_;
};

} // namespace tang::device
