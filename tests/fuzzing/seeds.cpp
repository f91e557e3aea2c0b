// Fixed seeds on every target. One finding: its kind, its text, and the command that repeats it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tang/fuzz/campaign.hpp"

using namespace tang;
using namespace tang::fuzz;

namespace {
Summary none_found(const std::string& target, uint64_t seed, int64_t cases) {
  Settings s;
  s.seed = seed;
  s.cases = cases;
  s.targets = {target};
  s.batch = 50;
  const char* path = std::getenv("PATH");
  s.opening.compiler.search = device::split_path(path ? path : "/usr/bin:/bin");
  const Summary sum = fuzz::fuzz(s, [](const Finding& f) {
    ADD_FAILURE() << f.kind << " on " << f.target << ", seed " << f.seed << ": " << f.what
                  << "\n  tang fuzz --targets " << f.target << " --choices " << words(f.choices);
  });
  std::printf("%s", text(sum).c_str());
  EXPECT_EQ(sum.cases.at(target), cases);
  EXPECT_GT(sum.values, 20 * cases);
  EXPECT_LT(sum.open, sum.values / 4) << "too little is judged";
  return sum;
}

void on_device(const std::string& target, int64_t cases) {
  Settings s;
  const char* path = std::getenv("PATH");
  s.opening.compiler.search = device::split_path(path ? path : "/usr/bin:/bin");
  const auto opened = run::open_target(target, s.opening);
  if (!opened) GTEST_SKIP() << target << ": " << opened.why();
  none_found(target, 1, cases);
}
} // namespace

TEST(seeds, c_1) { none_found("c", 1, 500); }

TEST(seeds, c_2) { none_found("c", 2, 500); }

TEST(seeds, c_3) { none_found("c", 3, 500); }

TEST(seeds, simulator) { none_found("simulator", 1, 200); }

TEST(seeds, opencl) { on_device("opencl", 150); }

TEST(seeds, vulkan) { on_device("vulkan", 150); }
