// Fixed seeds on every target. One finding: its kind, its text, and the command that repeats it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tang/device/memory_compiler.hpp"
#include "tang/fuzz/campaign.hpp"

using namespace tang;
using namespace tang::fuzz;

namespace {
void none_found(const std::string& target, uint64_t seed, int64_t cases, bool in_memory = false) {
  Settings s;
  s.in_memory = in_memory;
  if (target == "webgpu") {
    s.opening.webgpu = {TANG_WEBGPU};
    setenv("VK_ICD_FILENAMES", TANG_LAVAPIPE, 0); // software, where no driver was chosen
  }
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

// Parts, so that they run side by side.
TEST(seeds, c_by_the_system_compiler) { none_found("c", 1, 100); }

static void in_memory(uint64_t seed) {
  const auto found = tang::device::MemoryCompiler::find();
  if (!found) GTEST_SKIP() << found.why();
  none_found("c", seed, 500, true);
}

TEST(seeds, c_first_500) { in_memory(1); }

TEST(seeds, c_second_500) { in_memory(2); }

TEST(seeds, c_third_500) { in_memory(3); }

TEST(seeds, simulator) { none_found("simulator", 1, 1000); }

TEST(seeds, opencl) { none_found("opencl", 1, 150); }

TEST(seeds, vulkan) { none_found("vulkan", 1, 150); }

TEST(seeds, webgpu) { none_found("webgpu", 1, 60); }
