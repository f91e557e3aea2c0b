// What two runs stored, compared: other devices and schedules, and a fault put into one of them.
#include <gtest/gtest.h>

#include "run/opened.hpp"
#include "tang/ir/surface.hpp"
#include "tang/verify/record.hpp"
#include "tang/verify/samples.hpp"

using namespace tang;
using namespace tang::test;

namespace {
ir::Graph graph() {
  ir::Builder b;
  auto x = b.input("x", {12, 20}), y = b.input("y", {20, 9});
  auto [i, j, k] = ir::axes<"i j k">();
  auto p = ir::map({i, j}, sum(k, x(i, k) * y(k, j)), "p");
  b.output(ir::map({i}, sum(j, exp(p(i, j)))), "out");
  b.output(p, "product");
  return b.graph();
}

verify::Recording recorded(const run::Options& more = {}) {
  const auto& to = opened("c");
  const ir::Graph g = graph();
  run::Options o = run::options_for(to->target);
  o.schedule = more.schedule;
  o.optimize = more.optimize;
  run::Program p(g, to->backend, o);
  verify::Recording r{"graph", "c", {}};
  EXPECT_TRUE(verify::verify(p, g, verify::random_inputs(g, 1), 1e-4, 1, verify::recorder(r)).ok());
  return r;
}
} // namespace

TEST(recordings, two_runs_of_one_program_store_the_same) {
  const verify::Recording a = recorded(), b = recorded();
  const verify::Comparison c = verify::compare(a, b, 0);
  EXPECT_GE(c.common, 3);
  EXPECT_EQ(c.equal, c.common);
  EXPECT_FALSE(c.first);
}

TEST(recordings, runs_with_other_formats_of_outputs_are_of_other_graphs) {
  ir::Graph g = graph();
  const std::string wide = verify::name_of(g, 1);
  EXPECT_NE(verify::name_of(g, 2), wide);
  g.outputs[1].format = ir::Format::f16;
  EXPECT_NE(verify::name_of(g, 1), wide);
}

TEST(recordings, a_recording_read_back_is_the_same) {
  const verify::Recording a = recorded(), b = verify::recording(verify::print(a), "a");
  EXPECT_EQ(verify::print(b), verify::print(a));
  EXPECT_EQ(verify::compare(a, b, 0).equal, int64_t(a.all.size()));
}

TEST(recordings, another_order_of_a_sum_differs_within_the_budget) {
  run::Options other;
  other.schedule.groups["p"].split = 4;
  const verify::Recording a = recorded(), b = recorded(other);
  const verify::Comparison c = verify::compare(a, b, 1e-5);
  EXPECT_GE(c.common, 3);
  EXPECT_FALSE(c.beyond) << verify::text(c, a, b, 1e-5);
}

TEST(recordings, the_first_kernel_that_differs_is_named) {
  const verify::Recording a = recorded();
  verify::Recording b = a;
  for (size_t k = 0; k < b.all.size(); ++k)
    if (k + 1 >= b.all.size() - 1) b.all[k].got[3] += 0.5; // the last two arrays
  const size_t first = b.all.size() - 2;
  const verify::Comparison c = verify::compare(a, b, 1e-4);
  ASSERT_TRUE(c.beyond);
  EXPECT_EQ(c.beyond->a, first);
  EXPECT_EQ(c.beyond->at, 3);
  EXPECT_EQ(c.beyond->differ, 1);
  EXPECT_EQ(c.equal, c.common - 2);
  const std::string said = verify::text(c, a, b, 1e-4);
  EXPECT_NE(said.find(a.all[first].what), std::string::npos) << said;
}

TEST(recordings, runs_of_other_graphs_and_other_files_are_refused) {
  verify::Recording a = recorded(), b = a;
  b.graph = "another";
  EXPECT_THROW(verify::compare(a, b, 0), Error);
  EXPECT_THROW(verify::recording("no such thing", "a"), Error);
  const std::string all = verify::print(a);
  EXPECT_THROW(verify::recording(all.substr(0, all.size() - 40), "a"), Error);
}
