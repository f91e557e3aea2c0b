// Every graph of found/, the smallest ones that showed a fault, against the oracle: simulated and on the C
// target, with the rules and without.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tang/fuzz/campaign.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::fuzz;

TEST(found, every_graph_that_showed_a_fault) {
  Settings s;
  const char* path = std::getenv("PATH");
  s.opening.compiler.search = device::split_path(path ? path : "/usr/bin:/bin");
  int files = 0;
  for (auto& entry : std::filesystem::directory_iterator(TANG_SOURCE "/tests/fuzzing/found")) {
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    Case c = case_of(text.str(), entry.path().filename().string());
    for (bool rules : {true, false})
      for (int lanes : {16, 8}) {
        c.optimize = rules;
        c.late &= rules;
        c.lanes = lanes;
        for (const char* target : {"simulator", "c"})
          for (auto& f : try_case(c, target, s))
            ADD_FAILURE() << entry.path().filename().string() << (rules ? ", rules, " : ", as written, ")
                          << target << ": " << f.kind << ": " << f.what;
      }
    ++files;
  }
  EXPECT_GE(files, 5);
}
