// Products whose operands carry scales by blocks: each block is a contraction of the arrays as they are stored, its
// result is scaled and added on the fragments.
#include "backward/tensor_roles.hpp"
#include "lower/role_programs.hpp"
#include "tang/models/scaled.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;
using namespace tang::test;

namespace {
struct Size {
  int64_t m, n, k, columns, terms;
  ir::Format format = ir::Format::e4m3;
};

ir::Graph scaled(const Size& s) {
  ir::Builder b;
  b.output(models::scaled_product(b.input("a", {s.m, s.k}, s.format), b.input("a_scale", {s.k / s.terms, s.m}),
                                  b.param("b", {s.n, s.k}, s.format),
                                  b.param("b_scale", {s.n / s.columns, s.k / s.terms})),
           "y", ir::Format::bf16);
  return b.graph();
}
} // namespace

TEST(block_scales, the_weighed_sum_of_blocks_is_the_same_function) {
  for (const Size& s : {Size{5, 12, 192, 4, 64}, Size{3, 8, 96, 8, 32, bf16}}) {
    const ir::Graph g = rewrite::optimize(scaled(s)).graph, now = rewrite::weighed_blocks(g);
    EXPECT_NE(ir::hash(g), ir::hash(now));
    const eval::Inputs in = rounded_inputs(g);
    EXPECT_LT(eval::difference(eval::run(now, in).at("y"), eval::run(g, in).at("y")), 1e-12);
  }
  // Nothing is weighed, or blocks of few terms: the sum stays one.
  const ir::Graph few = rewrite::optimize(scaled({5, 12, 32, 4, 16})).graph;
  EXPECT_EQ(ir::hash(rewrite::weighed_blocks(few)), ir::hash(few));
}

TEST(block_scales, one_kernel_of_roles_and_it_equals_the_oracle) {
  for (const Size& s : {Size{200, 256, 384, 128, 128}, Size{72, 96, 256, 48, 64, bf16}, Size{150, 128, 512, 128, 128}}) {
    const ir::Graph g = scaled(s);
    const auto d = run::derive(g, run::hopper_options());
    ASSERT_EQ(d.kernels.kernels.size(), 1u) << plan::print(d.plan);
    const lower::Lowered& l = d.kernels.kernels[0];
    ASSERT_TRUE(l.roles) << l.refused << plan::print(d.plan);
    const eval::Inputs in = rounded_inputs(g);
    auto got = simulate({d.plan, d.kernels}, in);
    EXPECT_LT(eval::difference(got.at("y"), eval::run(g, in).at("y")), 4e-3) << kernel::print(l.kernel);
    expect_roles(l, *l.roles, buffers({d.plan, d.kernels}, l, in));
  }
}

// Every candidate's program: teams that take turns, copies that a cluster shares.
TEST(block_scales, candidates_do_what_the_kernel_says) {
  const ir::Graph g = scaled({250, 256, 384, 64, 128});
  const auto d = run::derive(g, run::hopper_options());
  const lower::Lowered& l = d.kernels.kernels.at(0);
  const eval::Inputs in = rounded_inputs(g);
  for (auto [cluster, beneath] : {std::pair(1, false), std::pair(2, false), std::pair(2, true)}) {
    target::Roles fields = *l.roles;
    fields.cluster = cluster, fields.beneath = beneath;
    SCOPED_TRACE(std::to_string(fields.math) + " teams, cluster " + std::to_string(cluster) + (beneath ? " beneath" : ""));
    expect_roles(l, fields, buffers({d.plan, d.kernels}, l, in), 2);
  }
}
