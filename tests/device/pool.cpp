// The thread pool: every workgroup once, scratch of its own, cheap small launches; buffers notice
// trespassers.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "tang/device/cpu.hpp"

using namespace tang::device;

namespace {
void count_groups(void* const* args, int64_t first, int64_t last, void*) {
  auto* hits = static_cast<std::atomic<int>*>(args[0]);
  for (int64_t g = first; g < last; ++g) hits[g].fetch_add(1);
}

void use_scratch(void* const* args, int64_t first, int64_t last, void* scratch) {
  auto* out = static_cast<int64_t*>(args[0]);
  auto* mine = static_cast<int64_t*>(scratch);
  for (int64_t g = first; g < last; ++g) {
    for (int64_t i = 0; i < 512; ++i) mine[i] = g * i;
    int64_t wrong = reinterpret_cast<uintptr_t>(scratch) % 64;
    for (int64_t i = 0; i < 512; ++i) wrong += mine[i] != g * i;
    out[g] = wrong;
  }
}

void nothing(void* const*, int64_t, int64_t, void*) {}
} // namespace

TEST(pool, every_workgroup_runs_once) {
  for (int workers : {1, 2, 5}) {
    Cpu cpu(workers);
    EXPECT_EQ(cpu.workers(), workers);
    for (int64_t n : {0, 1, 2, 3, 7, 64, 1000})
      for (int round = 0; round < 20; ++round) {
        std::vector<std::atomic<int>> hits(size_t(n) + 1);
        void* args[] = {hits.data()};
        cpu.launch(count_groups, args, n, 0);
        for (int64_t g = 0; g < n; ++g)
          ASSERT_EQ(hits[size_t(g)].load(), 1) << workers << " workers, group " << g << " of " << n;
        ASSERT_EQ(hits[size_t(n)].load(), 0);
      }
  }
}

TEST(pool, scratch_is_private_and_aligned) {
  Cpu cpu(4);
  std::vector<int64_t> wrong(300, 7);
  void* args[] = {wrong.data()};
  for (int round = 0; round < 20; ++round) {
    cpu.launch(use_scratch, args, 300, 4096);
    for (int64_t w : wrong) ASSERT_EQ(w, 0);
  }
}

TEST(pool, launches_from_several_threads_take_turns) {
  Cpu cpu(3);
  std::vector<std::thread> callers;
  std::atomic<int> bad{0};
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::vector<std::atomic<int>> hits(17);
        void* args[] = {hits.data()};
        cpu.launch(count_groups, args, 17, 64);
        for (auto& h : hits) bad += h != 1;
      }
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(bad.load(), 0);
}

TEST(pool, a_tiny_launch_costs_less_than_a_microsecond_on_one_thread) {
  Cpu cpu(1);
  double best = 1;
  for (int round = 0; round < 20; ++round) {
    const double from = Cpu::seconds();
    for (int i = 0; i < 1000; ++i) cpu.launch(nothing, nullptr, 1, 64);
    best = std::min(best, (Cpu::seconds() - from) / 1000);
  }
  std::printf("  %.0f ns a launch\n", best * 1e9);
  EXPECT_LT(best, 1e-6);
}

TEST(buffer, guards_see_writes_on_either_side) {
  for (size_t bytes : {0u, 1u, 63u, 64u, 1000u}) {
    Buffer b(bytes, true);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(b.as<char>()[i], 0);
    b.poison();
    EXPECT_FALSE(b.trespass());
    b.as<char>()[bytes] = 1;
    EXPECT_EQ(b.trespass(), int64_t(bytes));
    Buffer c(bytes, true);
    c.as<char>()[-1] = 1;
    EXPECT_EQ(c.trespass(), -1);
    Buffer moved = std::move(c);
    EXPECT_EQ(moved.trespass(), -1);
  }
}
