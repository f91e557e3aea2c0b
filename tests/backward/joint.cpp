// The gradients of attention as one kernel, each score evaluated once: what lies along its loop is added to in
// memory. A schedule asks for it; without one no result depends on an order.
#include "backward/attention_gradient.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// `teams`: where not chosen, of the kernel of all three.
run::Derivation derived(const Size& s, bool joint, int teams = 0) {
  run::Options o = run::hopper_options();
  for (const char* result : {"dq", "dk", "dv"}) {
    auto& f = o.schedule.groups[result];
    if (joint) f.joint = true;
    if (!teams) continue;
    f.roles = target::Roles{};
    f.roles->math = teams, f.roles->stages = {2, 2, 2, 2}, f.roles->lag = 0;
  }
  return run::derive(gradient(s), o);
}

int times(const std::string& what, const run::Derivation& d) { // that the CUDA text has it
  const std::string text = run::cuda_source(d, run::hopper_options().target);
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// Places at which lanes add to what other workgroups add to.
int adding(const run::Derivation& d) { return times("_add1(to", d) + times("_add2(to", d) + times("_add4(to", d); }

const lower::Lowered* joined(const run::Derivation& d) {
  for (auto& l : d.kernels.kernels)
    if (l.roles && l.schedule.find(" adds") != std::string::npos) return &l;
  return nullptr;
}

} // namespace

int products(const kernel::Kernel& k) {
  int n = 0;
  for (auto& stmt : k.body) {
    const kernel::Block* in = nullptr;
    if (auto* p = std::get_if<kernel::Pipeline>(&stmt.node)) in = &p->body;
    if (auto* l = std::get_if<kernel::Loop>(&stmt.node)) in = &std::get<kernel::Pipeline>(l->body[0].node).body;
    for (auto& x : in ? *in : kernel::Block()) n += std::holds_alternative<kernel::Contract>(x.node);
  }
  return n;
}

// One team's rows and a head as wide as they are: small enough for the oracle.
TEST(joint_gradient, one_kernel_of_five_products_equals_the_oracle) {
  for (const Size& s : {Size{1, 1, 260, 256, 64, false}, Size{2, 1, 256, 256, 64, true}}) {
    const auto d = derived(s, true, 1);
    const lower::Lowered* one = joined(d);
    ASSERT_TRUE(one) << plan::print(d.plan);
    EXPECT_EQ(products(one->kernel), 5);
    const eval::Inputs in = rounded_inputs(gradient(s));
    auto got = simulate({d.plan, d.kernels}, in);
    for (auto& [name, raw] : eval::run(gradient(s), in)) {
      const eval::Array a = filled(raw);
      double top = 0, off = 0;
      for (size_t x = 0; x < a.r.size(); ++x)
        top = std::max(top, std::abs(a.r[x])),
        off = std::max(off, std::isnan(got[name].r[x]) ? 1e9 : std::abs(got[name].r[x] - a.r[x]));
      EXPECT_LE(off, 1.2e-2 * top) << name;
    }
    expect_roles(*one, *one->roles, buffers(*one, true));
  }
}

// Two teams, each of which reads what the other makes.
TEST(joint_gradient, teams_wait_for_each_others_weights) {
  const auto d = derived({1, 1, 512, 512, 128, true}, true);
  const lower::Lowered* one = joined(d);
  ASSERT_TRUE(one) << plan::print(d.plan);
  EXPECT_EQ(one->roles->math, 2);
  EXPECT_EQ(products(one->kernel), 5);
  expect_roles(*one, *one->roles, buffers(*one, true), 2);
}

// Of a causal mask's blocks some are tested, some are not. Three loops would leave too few registers.
TEST(joint_gradient, full_and_tested_blocks_share_a_loop) {
  const auto d = derived({1, 1, 512, 512, 128, true}, true);
  const lower::Lowered* one = joined(d);
  ASSERT_TRUE(one) << plan::print(d.plan);
  EXPECT_TRUE(one->roles->one_loop);
  EXPECT_EQ(times("tang_mma_bf16_64_mn<0>(", d), 1);
  EXPECT_EQ(times("tang_add4(to + ", d), 8); // 64 x 64 of a team, four at a time
}

// The same blocks in a loop for each segment, and in one; also of the gradients that are stored once.
TEST(joint_gradient, one_loop_visits_the_blocks_of_all_segments) {
  for (bool joint : {true, false})
    for (const Size& s : {Size{1, 1, 200, 256, 64, true}, Size{1, 1, 256, 192, 64, true}})
      for (auto& l : derived(s, joint, 1).kernels.kernels) {
        if (!l.roles || l.roles->skew) continue;
        for (bool one : {true, false}) {
          target::Roles fields = *l.roles;
          fields.one_loop = one;
          expect_roles(l, fields, buffers(l, true), 2);
        }
      }
}

// The order in which workgroups add is not that of another run: only a schedule allows it.
TEST(joint_gradient, results_are_added_to_in_any_order_only_where_a_schedule_says_so) {
  const Size s{1, 1, 512, 512, 128, false};
  EXPECT_EQ(adding(derived(s, false)), 0);
  EXPECT_EQ(joined(derived(s, false)), nullptr);
  EXPECT_GT(adding(derived(s, true)), 0);
}

// Where the blocks of rows and the columns of what is added to differ, each result has its loop, as before.
TEST(joint_gradient, what_no_kernel_can_add_to_has_a_kernel_of_its_own) {
  for (const Size& s : {Size{1, 1, 512, 512, 64, false}, Size{1, 1, 512, 520, 128, false}}) {
    const auto d = derived(s, true);
    EXPECT_EQ(joined(d), nullptr);
    int kernels = 0;
    for (auto& l : d.kernels.kernels) kernels += bool(l.roles);
    EXPECT_EQ(kernels, 3) << plan::print(d.plan); // forward, dq, dk and dv
  }
}
