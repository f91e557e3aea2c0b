// The CUDA text of role programs whose workgroups run in clusters.
#include <functional>

#include <gtest/gtest.h>

#include "tang/ir/surface.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
std::string product(const std::function<void(target::Roles&)>& say) {
  ir::Builder b;
  const ir::Tensor x = b.input("a", {512, 448}, ir::Format::bf16), y = b.input("b", {256, 448}, ir::Format::bf16);
  auto [i, j, l] = ir::axes<"i j l">();
  b.output(ir::map({i, j}, ir::sum(l, x(i, l) * y(j, l))), "out", ir::Format::bf16);
  run::Options o = run::hopper_options();
  const run::Derivation d = run::derive(b.graph(), o);
  auto& f = o.schedule.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)];
  f.roles.emplace();
  f.roles->stages = {3};
  say(*f.roles);
  f.tile = {{0, 128}, {1, 64}, {2, 64}};
  return run::cuda_source(run::derive(b.graph(), o), o.target);
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
} // namespace

TEST(cluster_text, parts_meet_in_shared_memory) {
  const std::string text = product([](target::Roles& f) { f.split = f.cluster = 3; });
  EXPECT_NE(text.find("__cluster_dims__(3, 1, 1) __launch_bounds__(384, 1)"), std::string::npos);
  EXPECT_EQ(text.find("float* const parts"), std::string::npos);
  EXPECT_NE(text.find("if (lane < 3) tang_bar_publish_at("), std::string::npos);
  EXPECT_NE(text.find("tang_peer_quad(v, peer[p] + i * 512, p != "), std::string::npos);
}

TEST(cluster_text, one_copy_arrives_at_two_workgroups) {
  const std::string own = product([](target::Roles&) {}), shared = product([](target::Roles& f) { f.cluster = 2; });
  EXPECT_NE(shared.find("__cluster_dims__(2, 1, 1)"), std::string::npos);
  EXPECT_EQ(count(shared, "tang_bulk_share(3, base"), 1u) << "half of the rows' operand";
  EXPECT_EQ(count(own, "tang_bulk_load(base"), 2u);
  EXPECT_EQ(count(shared, "tang_bulk_load(base"), 1u);
}
