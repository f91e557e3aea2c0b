// Plans whose steps, buffers and bytes were counted by hand first.
#include "plan/graphs.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/norms.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// One head, bottom-right causal, as one fold of (m, l, u).
Graph attention_as_one_fold(int64_t n, int64_t m, int64_t d, int64_t c_) {
  Builder b;
  Tensor q = b.input("q", {n, d}), k = b.input("k", {m, d}), v = b.input("v", {m, c_});
  auto [i, j, x, c] = axes<"i j x c">();
  Scalar score = masked(Index(j) <= Index(i) + Index(m - n), sum(x, q(i, x) * k(j, x)) * 0.4);
  auto s = fold(online_softmax(2), j, {score, 1.0, v(j, c)});
  b.output(map({i, c}, ratio(s[2], s[1]), "o"), "out");
  b.output(map({i}, s[0] + log(s[1]), "lse"), "lse");
  return b.graph();
}
} // namespace

TEST(numbers, attention_is_one_step_and_stores_no_score) {
  const Graph g = attention_as_one_fold(33, 40, 5, 3);
  const Plan p = verified(g);
  ASSERT_EQ(p.steps.size(), 1u) << plan::print(p);
  const plan::Group& group = p.steps[0].group;
  EXPECT_EQ(group.extent, (At{33, 40}));
  EXPECT_EQ(group.role, (std::vector<plan::Role>{plan::Role::grid, plan::Role::looped}));
  EXPECT_EQ(group.shared.size(), 1u);
  EXPECT_EQ(group.members.size(), 1u);
  EXPECT_EQ(group.epilogues.size(), 2u);
  EXPECT_EQ(p.buffers.size(), 2u);      // out, lse; m, l, u stay in the workgroup
  EXPECT_EQ(largest_buffer(p), 33 * 3); // a score array has 1320
  EXPECT_EQ(p.arena_bytes, 0);
  EXPECT_EQ(p.bytes_moved(), 4 * (33 * 5 + 40 * 5 + 40 * 3 + 33 * 3 + 33));
}

TEST(numbers, each_live_score_is_evaluated_once) {
  const Graph g = attention_as_one_fold(33, 40, 5, 3);
  const Plan p = plan::make_plan(g, {});
  Machine m(p, 8);
  m.run(filled(g));
  ASSERT_EQ(m.evaluations().size(), 1u);
  EXPECT_EQ(m.evaluations().begin()->second, 792); // sum over 33 rows of i + 8 visible keys
}

TEST(numbers, as_written_stores_what_is_written) {
  const Graph g = attention_as_one_fold(33, 40, 5, 3);
  const Plan p = verified(g, {}, schedule::as_written());
  EXPECT_EQ(p.steps.size(), 4u);   // dot, (m, l, u), out, lse
  EXPECT_EQ(p.buffers.size(), 6u); // dot, m, l, u, out, lse
  EXPECT_EQ(largest_buffer(p), 33 * 40);
  // dot: q, k -> dot; fold: dot, v -> m, l, u; out: l, u -> out; lse: m, l -> lse
  const int64_t words = (165 + 200 + 1320) + (1320 + 120 + 33 + 33 + 99) + (33 + 99 + 99) + (33 + 33 + 33);
  EXPECT_EQ(p.bytes_moved(), 4 * words);
}

TEST(numbers, squared_relu_mlp_is_one_step) {
  Builder b;
  Tensor x = b.input("x", {33, 5}), w1 = b.param("w1", {40, 5}), w2 = b.param("w2", {3, 40});
  auto [t, e, f, o] = axes<"t e f o">();
  Scalar h = relu(sum(e, x(t, e) * w1(f, e)));
  Scalar y = sum(f, square(h) * w2(o, f));
  b.output(map({t, o}, square(y)), "y");
  const Graph g = b.graph();
  const Plan p = verified(g);
  ASSERT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.buffers.size(), 1u);
  EXPECT_EQ(p.bytes_moved(), 4 * (33 * 5 + 40 * 5 + 3 * 40 + 33 * 3));
  Machine m(p, 8);
  m.run(filled(g));
  EXPECT_EQ(m.evaluations().begin()->second, 33 * 40);
}

TEST(numbers, softmax_normalises_on_the_workgroup_that_has_the_row) {
  Builder b;
  Tensor x = b.input("x", {9, 21});
  auto [i, j] = axes<"i j">();
  auto s = fold(online_softmax(1), j, {x(i, j), 1.0});
  b.output(map({i, j}, exp(x(i, j) - s[0]) / s[1]), "y");
  const Plan p = verified(b.graph());
  ASSERT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.buffers.size(), 1u);
  EXPECT_EQ(p.steps[0].group.epilogues.at(0).axis, (std::vector<int>{0, -1}));
  EXPECT_EQ(p.bytes_moved(), 4 * (9 * 21 + 9 * 21));
}

TEST(numbers, layer_norm_is_one_step_and_reads_its_rows_once) {
  // mean, variance about it, and the map: x in, gain and bias in, y out; two row statistics stay with the rows.
  Builder b;
  b.output(models::layer_norm(b.input("x", {9, 21}), b.param("gain", {21}), b.param("bias", {21})), "y");
  const Plan p = compiled(b.graph());
  ASSERT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.steps[0].group.members.size(), 1u);
  EXPECT_EQ(p.steps[0].group.epilogues.size(), 2u);
  EXPECT_EQ(p.buffers.size(), 1u);
  EXPECT_EQ(p.arena_bytes, 0);
  EXPECT_EQ(p.bytes_moved(), 4 * (9 * 21 + 21 + 21 + 9 * 21));
}

TEST(numbers, folds_chain_through_maps_of_the_same_rows) {
  // max, exp of what lies below it (stored: an output), their sum, the quotient: one step; x in, e and y out.
  Builder b;
  Tensor x = b.input("x", {9, 21});
  auto [i, j] = axes<"i j">();
  Tensor e = map({i, j}, exp(x(i, j) - max(j, x(i, j))), "e");
  b.output(e, "e");
  b.output(map({i, j}, e(i, j) / sum(j, e(i, j))), "y");
  const Plan p = verified(b.graph());
  ASSERT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.bytes_moved(), 4 * 3 * 9 * 21);
}

TEST(numbers, a_fold_of_other_rows_is_a_step_of_its_own) {
  // s[i] over the rows of x, then sums along its columns: column j reads every row's s.
  Builder b;
  Tensor x = b.input("x", {9, 21});
  auto [i, j] = axes<"i j">();
  b.output(map({j}, sum(i, x(i, j) - max(j, x(i, j)))), "y");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.steps.size(), 2u) << plan::print(p);
}

TEST(numbers, epilogues_chain_and_read_each_other_at_whole_private_axes) {
  Builder b;
  Tensor x = b.input("x", {9, 21});
  auto [i, j, k] = axes<"i j k">();
  Tensor e = map({i, j}, exp(x(i, j) - max(j, x(i, j))), "e");
  Tensor r = map({i, k}, e.at({Index(i), Index(20) - Index(k)}) + e.at({Index(i), Index(k)}), "reversed");
  b.output(r, "r");
  const Plan p = verified(b.graph());
  ASSERT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.steps[0].group.epilogues.size(), 2u);
  EXPECT_EQ(p.buffers.size(), 1u);
}

TEST(numbers, a_scaled_projection_is_finished_by_its_contraction) {
  Builder b; // the row statistic is 9 words, the projection 189: the projection is not stored
  Tensor x = b.input("x", {9, 300}), w = b.param("w", {21, 300});
  auto [i, j, o] = axes<"i j o">();
  b.output(map({i, o}, sum(j, x(i, j) * w(o, j)) / sqrt(sum(j, square(x(i, j))) + 1.0)), "y");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.steps.size(), 2u) << plan::print(p);
  ASSERT_EQ(p.buffers.size(), 2u) << plan::print(p);
  EXPECT_EQ(p.bytes_moved(), 4 * ((9 * 300 + 9) + (9 * 300 + 21 * 300 + 9 + 9 * 21)));
}

TEST(numbers, maps_of_the_same_points_are_one_step_when_one_reads_the_other) {
  Builder b;
  Tensor x = b.input("x", {9, 21}), y = b.input("y", {9, 21});
  auto [i, j] = axes<"i j">();
  Tensor a = map({i, j}, x(i, j) + y(i, j), "a");
  b.output(a, "a");
  b.output(map({i, j}, square(a(i, j)), "b"), "b");
  b.output(map({j, i}, a(i, j), "t"), "t");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.bytes_moved(), 4 * 5 * 9 * 21); // x, y in; a, b, t out
}

TEST(numbers, a_scale_of_ten_values_does_not_run_a_large_map_on_its_workgroup) {
  Builder b;
  Tensor s = b.input("s", {10}), x = b.input("x", {40, 50});
  auto [k, i, j] = axes<"k i j">();
  b.output(map({i, j}, x(i, j) * max(k, s(k))), "y");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.steps.size(), 2u) << plan::print(p);
  EXPECT_EQ(p.bytes_moved(), 4 * (10 + 1 + 1 + 2000 + 2000));
}

TEST(numbers, a_gather_counts_the_rows_it_touches) {
  Builder b;
  Tensor table = b.param("table", {1000, 8}), ids = b.input("ids", {5}, Format::i32);
  auto [t, d] = axes<"t d">();
  b.output(map({t, d}, table(ids(t), d)), "y");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.bytes_moved(), 4 * (5 * 8 + 5 + 5 * 8));
}

TEST(numbers, a_chain_reuses_two_places) {
  Builder b; // four matmuls in a row: arrays 1 and 3 never live together
  Tensor x = b.input("x", {300, 300}), w = b.param("w", {300, 300});
  auto [i, j, k] = axes<"i j k">();
  for (int n = 0; n < 4; ++n) x = map({i, j}, sum(k, x(i, k) * w(k, j)), "x" + std::to_string(n));
  b.output(x, "y");
  const Plan p = plan::make_plan(b.graph(), {});
  EXPECT_EQ(p.steps.size(), 4u) << plan::print(p);
  EXPECT_EQ(p.buffers.size(), 4u);
  EXPECT_EQ(p.arena_bytes, 2 * 300 * 300 * 4);
}

TEST(numbers, an_unbound_extent_is_an_error) {
  Builder b;
  Tensor x = b.input("x", {b.symbol("n")});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) + 1.0), "y");
  EXPECT_THROW(plan::make_plan(b.graph(), {}), Error);
}
