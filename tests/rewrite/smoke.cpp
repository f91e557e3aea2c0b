#include <gtest/gtest.h>

#include "tang/eval/oracle.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
TEST(smoke, witnesses) {
  for (auto& r : rewrite::normal_rules()) {
    const ir::Graph g = r.witness();
    auto out = r.apply(g);
    EXPECT_TRUE(bool(out)) << r.name << ": " << out.why();
    auto o = rewrite::optimize(g);
    printf("%s\n%s\n", r.name.c_str(), rewrite::explain(o.trace).c_str());
  }
}
