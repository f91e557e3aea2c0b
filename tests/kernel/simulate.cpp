// The simulator against plain loops, in every order of the workgroups, and what it counts.
#include "tang/kernel/simulate.hpp"

#include <gtest/gtest.h>

#include "kernel/samples.hpp"

using namespace samples;

namespace {
void expect_clean(const std::string& name, const Sample& s, const Options& o = {}) {
  std::vector<Buffer> b = s.buffers;
  const Outcome out = simulate(s.kernel, b, o);
  EXPECT_EQ(text(out), "") << name;
  EXPECT_EQ(differences(s, b), "") << name;
}
}  // namespace

TEST(simulate, every_sample_equals_plain_loops_in_every_order) {
  for (auto& [name, s] : all())
    for (Order order : {Order::forward, Order::reverse, Order::random}) {
      Options o;
      o.order = order;
      o.seed = 7;
      expect_clean(name, s, o);
    }
}
TEST(simulate, expanded_pipelines_mean_the_same) {
  for (auto& [name, s] : all()) {
    Sample e = s;
    e.kernel = expand_pipelines(s.kernel);
    expect_clean(name, e);
  }
}
TEST(simulate, partial_results_of_a_fold_join_to_the_same_value) {
  for (auto& m : monoids())
    for (int ways : {1, 3})
      for (int vector : {-1, 0, 1}) {
        RowFold f;
        f.ways = ways;
        f.vector = vector;
        expect_clean(m.name, row_fold(m, f));
      }
}
TEST(simulate, sizes_around_the_block) {
  for (int64_t n : {1, 63, 64, 65, 128}) expect_clean("map", map(n));
  for (int64_t n : {1, 7, 8, 9, 16, 17}) {
    expect_clean("flash", flash({n, n, 4, 8, 4}));
    expect_clean("flash, fewer keys", flash({n, (n + 1) / 2, 4, 8, 4}));
    expect_clean("matmul", matmul({n, n + 1, n + 2, 8, 8, 4, 4}));
  }
}
TEST(simulate, stores_round_to_the_format_of_the_memory) {
  Sample s = map();
  s.kernel.memories[1].format = Format::bf16;
  std::vector<Buffer> b = s.buffers;
  ASSERT_TRUE(simulate(s.kernel, b).clean());
  for (size_t i = 0; i < b[1].r.size(); ++i)
    EXPECT_EQ(b[1].r[i], expr::rounded(s.want[1].r[i], Format::bf16));
}
TEST(simulate, rounding_every_operation_is_an_option) {
  Sample s = row_fold(monoids()[0]);
  Options o;
  o.rounded = true;
  std::vector<Buffer> b = s.buffers;
  ASSERT_TRUE(simulate(s.kernel, b, o).clean());
  for (int64_t r = 0; r < 21; ++r) {
    float sum = 0;
    for (int64_t j = 0; j < 37; ++j) sum += float(s.buffers[0].r[size_t(r * 37 + j)]);
    EXPECT_EQ(b[1].r[size_t(r)], double(sum));
  }
}
TEST(simulate, integers_wrap_to_their_format) {
  Kernel k;
  const int y = global(k, "y", {4}, Access::write, Format::i8);
  const Var i = k.fresh("i");
  k.body = {apply({{i, 4}}, ref(y, {v(i)}), {}, coord(k, i) * 100.0)};
  std::vector<Buffer> b = {wholes({7, 7, 7, 7})};
  EXPECT_TRUE(simulate(k, b).clean());
  EXPECT_EQ(b[0].i, (std::vector<int64_t>{0, 100, -56, 44}));
}
TEST(simulate, counts_loads_and_stores_by_level) {
  const Matmul z{32, 32, 16, 16, 16, 8, 4};
  Sample s = matmul(z);
  std::vector<Buffer> b = s.buffers;
  Options o;
  o.lanes = 4;
  const Outcome out = simulate(s.kernel, b, o);
  EXPECT_EQ(out.memory[0].loads, 32 * 16 * 2);  // A once for each of two column blocks
  EXPECT_EQ(out.memory[1].loads, 32 * 16 * 2);
  EXPECT_EQ(out.memory[2].stores, 32 * 32);
  EXPECT_EQ(out.at[0].loads, 2 * 32 * 16 * 2);
  EXPECT_EQ(out.written[2], 32 * 32);
  // 4 rows x 1 vector of 4 columns stay in registers: an element of A is read for each of 4 vectors, B for
  // each of 4 rows.
  EXPECT_EQ(out.memory[3].loads, 4 * (32 * 16 * 2));
  EXPECT_EQ(out.memory[4].loads, 4 * (32 * 16 * 2));
}
TEST(simulate, dead_rows_of_a_tile_are_read_and_those_of_a_global_are_not) {
  Kernel k;  // y[i, j] = a[i] b[j] over 4 rows of which 3 exist
  const int a = global(k, "a", {3, 1}, Access::read), b = global(k, "b", {1, 4}, Access::read);
  const int y = global(k, "y", {3, 4}, Access::write), t = tile(k, "t", {3, 1});
  const Var i = k.fresh("i"), j = k.fresh("j"), z = k.fresh("z");
  Contract x;
  x.m = {{i, 4}};
  x.n = {{j, 4}};
  x.k = {{z, 1}};
  x.dst = ref(y, {v(i), v(j)});
  x.a = ref(a, {v(i), v(z)});
  x.b = ref(b, {v(z), v(j)});
  x.accumulate = false;
  x.m_end = constant(3);
  k.body = {apply({{i, 3}}, ref(t, {v(i), constant(0)}), {ref(a, {v(i), constant(0)})}, arg(k, 0)), {x}};
  std::vector<Buffer> buffers = {reals(3, 1), reals(4, 2), empty_reals(12)};
  EXPECT_TRUE(simulate(k, buffers).clean());
  EXPECT_EQ(buffers[2].r[11], double(float(buffers[0].r[2] * buffers[1].r[3])));
  std::get<Contract>(k.body[1].node).a.memory = t;
  Outcome out = simulate(k, buffers);
  ASSERT_EQ(out.faults.size(), 1u);
  EXPECT_EQ(out.faults[0].kind, Fault::outside);
  EXPECT_NE(out.faults[0].text.find("t[3, 0]"), std::string::npos) << out.faults[0].text;
  std::get<Contract>(k.body[1].node).a.memory = a;
  std::get<Contract>(k.body[1].node).m_end.reset();  // then the fourth row is one
  EXPECT_FALSE(simulate(k, buffers).clean());
}
TEST(simulate, ten_million_steps_are_fast_enough_for_a_test) {
  Sample s = matmul({256, 256, 128, 64, 64, 32, 8});
  expect_clean("matmul", s);
  RowFold f;
  f.rows = 64;
  f.columns = 4096;
  expect_clean("fold", row_fold(monoids()[4], f));
}
