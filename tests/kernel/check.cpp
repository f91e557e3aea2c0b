// Legality: every sample has no problem, and each seeded fault is found by the checker, the simulator or the values.
#include "tang/kernel/check.hpp"

#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/base/match.hpp"
#include "tang/kernel/facts.hpp"

using namespace samples;

namespace {
std::string lines(const std::vector<std::string>& v) {
  std::string out;
  for (auto& s : v) out += s + "\n";
  return out;
}
}  // namespace

TEST(check, the_samples_have_no_problem) {
  for (auto& [name, s] : all()) {
    EXPECT_EQ(lines(problems(s.kernel)), "") << name;
    EXPECT_EQ(lines(problems(expand_pipelines(s.kernel))), "") << name << ", expanded";
  }
  for (int64_t n : {1, 7, 8, 9, 16, 17}) {
    EXPECT_EQ(lines(problems(flash({n, n, 4, 8, 4}).kernel)), "") << n;
    EXPECT_EQ(lines(problems(flash({n, (n + 1) / 2, 4, 8, 4}).kernel)), "") << n;
    EXPECT_EQ(lines(problems(matmul({n, n + 1, n + 2, 8, 8, 4, 4}).kernel)), "") << n;
  }
}
