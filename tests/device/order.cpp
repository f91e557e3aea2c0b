// What kernels wait for: every conflict is ordered, nothing else is, and nothing is said twice.
#include "tang/device/order.hpp"

#include <random>

#include <gtest/gtest.h>

using namespace tang::device;

namespace {
using Waits = std::vector<std::vector<size_t>>;

TEST(order, readers_run_beside_each_other_and_a_writer_after_them) {
  int a, b, c; // regions
  EXPECT_EQ(waits({{{&a, 0, 8, true}},
                   {{&a, 0, 8, false}, {&b, 0, 8, true}},
                   {{&a, 0, 8, false}, {&c, 0, 8, true}},
                   {{&b, 0, 8, false}, {&c, 0, 8, false}, {&a, 0, 8, true}}}),
            (Waits{{}, {0}, {0}, {1, 2}}));
}

TEST(order, parts_of_a_region_are_apart_and_bytes_that_meet_are_not) {
  int a;
  EXPECT_EQ(waits({{{&a, 0, 8, true}}, {{&a, 8, 16, true}}, {{&a, 7, 9, false}}, {{&a, 4, 4, true}}}),
            (Waits{{}, {}, {0, 1}, {}}));
}

TEST(order, of_random_kernels_is_that_of_every_pair_that_meets) {
  std::mt19937 rng(7);
  for (int round = 0; round < 200; ++round) {
    const size_t n = 1 + rng() % 24;
    const char regions[3] = {};
    std::vector<std::vector<Touch>> k(n);
    for (auto& one : k)
      for (size_t t = 1 + rng() % 3; t-- > 0;) {
        const size_t at = rng() % 12;
        one.push_back({regions + rng() % 3, at, at + 1 + rng() % 4, rng() % 3 == 0});
      }
    const Waits w = waits(k);
    std::vector<std::vector<char>> reach(n, std::vector<char>(n)), must = reach;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j) {
        for (auto& x : k[i])
          for (auto& y : k[j])
            must[i][j] |= (x.written || y.written) && x.region == y.region && x.begin < y.end && y.begin < x.end;
        if (must[i][j])
          for (size_t h = 0; h <= j; ++h) must[i][h] |= h < j && must[j][h];
      }
    for (size_t i = 0; i < n; ++i)
      for (size_t at = 0; at < w[i].size(); ++at) {
        const size_t j = w[i][at];
        ASSERT_LT(j, i);
        EXPECT_TRUE(!at || w[i][at - 1] < j);
        for (size_t other : w[i]) EXPECT_FALSE(other != j && reach[other][j]) << "said twice";
        reach[i][j] = 1;
        for (size_t h = 0; h < j; ++h) reach[i][h] |= reach[j][h];
      }
    EXPECT_EQ(reach, must);
  }
}
} // namespace
