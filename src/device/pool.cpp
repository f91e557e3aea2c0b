#include "tang/device/pool.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>

namespace tang::device {

namespace {
constexpr int spins = 4000; // about 20 microseconds: the gap between the kernels of one step

inline void pause_briefly() {
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

#ifdef __linux__
int this_core() { return sched_getcpu(); }

// A busy scheduler may wake a worker on its caller's core, where it runs only when the caller is done, and so looks
// too idle to be moved. It steps aside by itself, and stays free to go anywhere later.
void leave(int core) {
  cpu_set_t all, others;
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(size_t(core), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof all, &all);
}
#else
int this_core() { return -1; }

void leave(int) {}
#endif
} // namespace

Pool::Pool(int workers) : scratch_(size_t(std::max(1, workers))) {
  for (int w = 1; w < workers; ++w) threads_.emplace_back([this, w] { work(w); });
}

Pool::~Pool() {
  stop_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (auto& t : threads_) t.join();
}

void Pool::reserve(int64_t bytes) {
  if (bytes <= scratch_bytes_) return;
  for (auto& s : scratch_) {
    s.bytes = std::make_unique<char[]>(size_t(bytes) + 4096);
    s.start = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(s.bytes.get()) + 4095) & ~uintptr_t(4095));
  }
  scratch_bytes_ = bytes;
}

void Pool::share(int self) {
  const Job job = job_;
  for (;;) {
    const int64_t first = next_.fetch_add(job.chunk, std::memory_order_relaxed);
    if (first >= job.count) return;
    job.f(job.args, first, std::min(job.count, first + job.chunk), scratch_[size_t(self)].start);
  }
}

void Pool::work(int self) {
  uint32_t seen = 0;
  for (;;) {
    for (int s = 0; s < spins && epoch_.load(std::memory_order_acquire) == seen; ++s) pause_briefly();
    epoch_.wait(seen, std::memory_order_acquire);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_) return;
    // One that wakes late finds the job closed and must not look at it.
    if (inside_.fetch_add(1, std::memory_order_acq_rel) >= 0) {
      if (const int core = job_.core; core >= 0 && core == this_core()) leave(core);
      share(self);
    }
    inside_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void Pool::launch(KernelFunction f, void* const* args, int64_t workgroups, int64_t scratch_bytes) {
  if (workgroups <= 0) return;
  std::lock_guard<std::mutex> lock(turn_);
  reserve(scratch_bytes);
  if (threads_.empty() || workgroups == 1) return f(args, 0, workgroups, scratch_[0].start);
  // Late ones of the last launch only pass by; the job may change while they do, for they do not read it.
  // Four chunks a worker: late ones even out what early ones cost, and the counter is touched rarely.
  job_ = {f, args, workgroups, std::max<int64_t>(1, workgroups / (4 * workers())), this_core()};
  next_.store(0, std::memory_order_relaxed);
  inside_.fetch_add(closed, std::memory_order_acq_rel); // open
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  epoch_.notify_all();
  share(0);
  // All workgroups are taken. Close, and wait for those that are still at theirs, not for those that never woke.
  inside_.fetch_sub(closed, std::memory_order_acq_rel);
  for (int s = 0; inside_.load(std::memory_order_acquire) != -closed; ++s) {
    if (s < spins)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

} // namespace tang::device
