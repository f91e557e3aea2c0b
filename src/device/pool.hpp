// A few persistent threads that share out the workgroups of one launch at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tang::device {

// Runs workgroups [first, last); `scratch` is this call's alone, aligned to 64 bytes.
using KernelFunction = void (*)(void* const* args, int64_t first, int64_t last, void* scratch);

class Pool {
public:
  explicit Pool(int workers); // the calling thread is one of them
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int workers() const { return int(threads_.size()) + 1; }

  // Makes sure that launches with this much scratch allocate nothing.
  void reserve(int64_t scratch_bytes);
  // Returns when all workgroups have run. Launches of several threads are served one after the other.
  void launch(KernelFunction f, void* const* args, int64_t workgroups, int64_t scratch_bytes);

private:
  struct alignas(64) Scratch {
    std::unique_ptr<char[]> bytes;
    char* start = nullptr;
  };

  struct Job {
    KernelFunction f = nullptr;
    void* const* args = nullptr;
    int64_t count = 0, chunk = 1;
    int core = -1;  // the caller's, when it is known
  };

  static constexpr int64_t closed = int64_t(1) << 32;

  void work(int self);
  void share(int self);

  std::vector<std::thread> threads_;
  std::vector<Scratch> scratch_;
  int64_t scratch_bytes_ = 0;
  std::mutex turn_;
  Job job_;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> inside_{-closed}; // workers in the job, less `closed` while none may enter
  std::atomic<bool> stop_{false};
};

} // namespace tang::device
