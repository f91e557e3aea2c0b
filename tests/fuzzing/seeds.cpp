// Fixed seeds on every target. One finding: its kind, its text, and the command that repeats it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tang/fuzz/campaign.hpp"

using namespace tang;
using namespace tang::fuzz;

namespace {
void none_found(const std::string& target, uint64_t seed, int64_t cases) {
  Settings s;
  s.seed = seed;
  s.cases = cases;
  s.targets = {target};
  s.batch = 50;
  const char* path = std::getenv("PATH");
  s.opening.compiler.search = device::split_path(path ? path : "/usr/bin:/bin");
  // Said by the process of a batch: a driver that is open here would not survive a fork.
  std::string absent;
  const Summary sum = fuzz::fuzz(s, [&](const Finding& f) {
    if (f.kind == "absent")
      absent = f.what;
    else
      ADD_FAILURE() << f.kind << " on " << f.target << ", seed " << f.seed << ": " << f.what
                    << "\n  tang fuzz --targets " << f.target << " --choices " << words(f.choices);
  });
  if (!absent.empty()) GTEST_SKIP() << target << ": " << absent;
  std::printf("%s", text(sum).c_str());
  EXPECT_EQ(sum.cases.at(target), cases);
  EXPECT_GT(sum.values, 20 * cases);
  EXPECT_LT(sum.open, sum.values / 4) << "too little is judged";
}

} // namespace

TEST(seeds, c) { none_found("c", 1, 500); }

TEST(seeds, simulator) { none_found("simulator", 1, 1000); }

TEST(seeds, opencl) { none_found("opencl", 1, 100); }
