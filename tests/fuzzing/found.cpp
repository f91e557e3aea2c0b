// Every graph of found/, the smallest ones that showed a fault, against the oracle: simulated and on the C
// target, with the rules and without.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzzing/targets.hpp"
#include "tang/device/memory_compiler.hpp"
#include "tang/fuzz/message.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::fuzz;

namespace {
std::map<std::string, Case> cases() { // by the file's name
  std::map<std::string, Case> out;
  for (auto& entry : std::filesystem::directory_iterator(TANG_SOURCE "/tests/fuzzing/found")) {
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string name = entry.path().filename().string();
    out[name] = case_of(text.str(), name);
  }
  return out;
}

// In a process of its own: a driver that is open does not survive a fork.
void none_on(const std::string& target) {
  std::string absent;
  Summary sum;
  for (auto& f : in_process(
           [&](Sender& out) {
             const Settings s = fuzz::test::settings_for(target);
             const auto opened = run::open_target(target, s.opening);
             if (!opened) return out.fault(0, {"absent", opened.why()}, {});
             for (auto& [name, c] : cases())
               for (auto& x : try_case(c, target, s)) out.fault(0, {x.kind, name + ": " + x.what}, {});
           },
           sum, target))
    if (f.kind == "absent")
      absent = f.what;
    else
      ADD_FAILURE() << target << ": " << f.kind << ": " << f.what;
  if (!absent.empty()) GTEST_SKIP() << target << ": " << absent;
}
} // namespace

TEST(found, every_graph_that_showed_a_fault) {
  Settings s = fuzz::test::settings_for("c");
  const auto all = cases();
  EXPECT_GE(all.size(), 30u);
  for (auto [name, c] : all)
    for (bool rules : {true, false})
      for (int lanes : {16, 8}) {
        c.optimize = rules;
        c.late &= rules;
        c.lanes = lanes;
        s.in_memory = lanes == 8 && device::MemoryCompiler::find();
        for (const char* target : {"simulator", "c"})
          for (auto& f : try_case(c, target, s))
            ADD_FAILURE() << name << (rules ? ", rules, " : ", as written, ") << target << ": " << f.kind << ": "
                          << f.what;
      }
}

TEST(found, every_graph_that_showed_a_fault_on_vulkan) { none_on("vulkan"); }

TEST(found, every_graph_that_showed_a_fault_on_opencl) { none_on("opencl"); }

TEST(found, every_graph_that_showed_a_fault_on_webgpu) { none_on("webgpu"); }
