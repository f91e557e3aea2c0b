// Fixed seeds on every target. One finding: its kind, its text, and the command that repeats it.
#include <gtest/gtest.h>

#include "fuzzing/targets.hpp"
#include "tang/device/memory_compiler.hpp"
#include "tang/fuzz/campaign.hpp"

using namespace tang;
using namespace tang::fuzz;

namespace {
void none_found(const std::string& target, uint64_t skip, int64_t cases, bool in_memory = false) {
  Settings s = fuzz::test::settings_for(target);
  s.in_memory = in_memory;
  s.skip = skip;
  s.cases = cases;
  s.targets = {target};
  s.batch = 50;
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
TEST(seeds, c_by_the_system_compiler) { none_found("c", 0, 100); }

static void in_memory(uint64_t skip) {
  const auto found = tang::device::MemoryCompiler::find();
  if (!found) return none_found("c", skip, 250);
  none_found("c", skip, 500, true);
}

TEST(seeds, c_first_500) { in_memory(0); }

TEST(seeds, c_second_500) { in_memory(500); }

TEST(seeds, c_third_500) { in_memory(1000); }

TEST(seeds, simulator) { none_found("simulator", 0, 1000); }

TEST(seeds, opencl) { none_found("opencl", 0, 75); }

TEST(seeds, opencl_second) { none_found("opencl", 75, 75); }

TEST(seeds, vulkan) { none_found("vulkan", 0, 75); }

TEST(seeds, vulkan_second) { none_found("vulkan", 75, 75); }

TEST(seeds, webgpu) { none_found("webgpu", 0, 60); }

// The emulation; TANG_METAL_CASES says how many where 60 are not enough.
TEST(seeds, metal) {
  const char* more = std::getenv("TANG_METAL_CASES");
  none_found("metal", 0, more ? std::atoll(more) : 60);
}
