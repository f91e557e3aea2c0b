// How CUDA folds rows: in halves, by powers of halves, by value and then place, once what one lane needs.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/emit/gpu_fold_terms.hpp"
#include "tang/expr/build.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/softmax.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
constexpr auto bf16 = ir::Format::bf16, f16 = ir::Format::f16, f32 = ir::Format::f32;

int times(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string text_of(const ir::Graph& g) {
  const std::string unit = run::cuda_source(run::derive(g, run::cuda_options()));
  return unit.substr(unit.find("extern \"C\""));
}

ir::Graph log_sum_exp(int64_t m, int64_t n, ir::Format f) {
  ir::Builder b;
  b.output(models::log_sum_exp(b.input("x", {m, n}, f)), "y");
  return b.graph();
}

ir::Graph softmax(int64_t m, int64_t n) {
  ir::Builder b;
  b.output(models::softmax(b.input("x", {m, n}, bf16)), "y", bf16);
  return b.graph();
}

ir::Graph place(int64_t m, int64_t n, ir::Format f, const ir::MonoidSpec& of) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {m, n}, f);
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, ir::fold(of, j, {x(i, j), ir::iota(j)})[1]), "y");
  return b.graph();
}
} // namespace

TEST(fold_texts, the_largest_of_halves_is_found_before_they_are_converted) {
  EXPECT_EQ(times(text_of(log_sum_exp(8192, 8192, bf16)), "tang_max_run_bf16<4>("), 1);
  EXPECT_EQ(times(text_of(log_sum_exp(8192, 8192, f16)), "tang_max_run_f16<4>("), 1);
  EXPECT_EQ(times(text_of(log_sum_exp(8192, 8192, f32)), "tang_max_run_"), 0);
  const std::string odd = text_of(log_sum_exp(33, 100003, bf16)); // the row's ends go one by one
  const size_t at = odd.find("tang_max_run_bf16<4>(");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(odd.rfind("if (whole)", at), std::string::npos);
}

TEST(fold_texts, a_sum_of_powers_adds_squares_and_asks_for_an_empty_row_once) {
  const std::string text = text_of(log_sum_exp(8192, 8192, bf16));
  EXPECT_EQ(times(text, "tang_exp2_of_half("), 1);
  EXPECT_EQ(times(text, "tang_fma1(l0, l0, a0)"), 1);
  EXPECT_EQ(times(text, "tang_exp21("), 0);
  EXPECT_EQ(times(text, " ? 0x0p+0f : a0);"), 1);
}

// 2^h, 0 below the least normal number, squared: no power of 2 that a float holds is lost.
TEST(fold_texts, the_square_of_a_power_that_is_flushed_is_the_power) {
  for (float h = -80; h < 64; h += 0.03125f) {
    float root = std::exp2(h);
    if (root < 0x1p-126f) root = 0;
    const float square = root * root, want = std::exp2(2 * h);
    EXPECT_NEAR(square, want, want * 0x1p-21f + 0x1p-149f) << h;
  }
  for (float h = -400; h < -80; h += 0.5f) {
    float root = std::exp2(h);
    if (root < 0x1p-126f) root = 0;
    EXPECT_EQ(root * root, std::exp2(2 * h)) << h;
  }
}

TEST(fold_texts, a_place_is_looked_for_where_the_extreme_value_is) {
  const std::string most = text_of(place(8192, 8192, bf16, ir::argmax())), least = text_of(place(8192, 576, f16, ir::argmin()));
  EXPECT_EQ(times(most, "tang_first_bf16<4>("), 1);
  EXPECT_EQ(times(most, " < k0 && "), 1);
  EXPECT_EQ(times(most, "tang_short_key("), 0);
  EXPECT_EQ(times(least, "tang_first_f16<4>("), 1);
  EXPECT_EQ(times(least, " > k0 && "), 1);
  EXPECT_EQ(times(text_of(place(8192, 8192, f32, ir::argmax())), "tang_first_"), 0);
}

TEST(fold_texts, one_subgroup_evaluates_what_the_first_lane_stores) {
  EXPECT_EQ(times(text_of(log_sum_exp(8192, 8192, bf16)), "if (lane % 256 < 32)"), 2); // the parts' sum, and the logarithm
  EXPECT_EQ(times(text_of(place(8192, 8192, bf16, ir::argmax())), "if (lane % 256 < 32)"), 1);
  EXPECT_EQ(times(text_of(softmax(8192, 8192)), " < 32)"), 0); // all lanes store
}

TEST(fold_texts, what_the_shared_cache_may_hold_passes_the_nearest_where_rows_are_stored) {
  EXPECT_EQ(times(text_of(softmax(262144, 64)), "tang_get_once<uint16_t, 8>("), 1);
  EXPECT_EQ(times(text_of(softmax(8192, 8192)), "tang_get_once<"), 0); // 134 MB
  EXPECT_EQ(times(text_of(log_sum_exp(262144, 64, bf16)), "tang_get_once<"), 0);
  ir::Builder b; // what is read by every row is not read once
  ir::Tensor x = b.input("x", {4096, 4096}, bf16), gain = b.param("gain", {4096}, bf16);
  b.output(models::rms_norm(x, gain), "y", bf16);
  EXPECT_EQ(times(text_of(b.graph()), "tang_get_once<"), 1);
}

TEST(fold_texts, clusters_whose_rows_are_not_stored_share_a_processor_in_threes) {
  EXPECT_EQ(times(text_of(log_sum_exp(1000, 151936, bf16)), "__launch_bounds__(512, 3)"), 1);
  EXPECT_EQ(times(text_of(softmax(1000, 151936)), "__launch_bounds__(512, 2)"), 1);
}

TEST(fold_texts, a_condition_of_the_row_leaves_the_terms) {
  using expr::Op;
  kernel::Kernel k;
  kernel::Fold f;
  const kernel::Var column = k.fresh("j"), row = k.fresh("i");
  f.kept = {{row, 4}}, f.folded = {{column, 8}};
  f.identity = {expr::real(0)};
  kernel::Pool& p = *k.pool;
  f.combine = {p.make(Op::add, {p.leaf(Op::var, expr::Type::real, 0), p.leaf(Op::var, expr::Type::real, 1)})};
  f.body.refs = {{0, {{kernel::variable(row), {}}}, false}, {1, {{kernel::variable(column), {}}}, false}};
  const expr::Id of_row = p.leaf(Op::arg, expr::Type::real, 0), moving = p.leaf(Op::arg, expr::Type::real, 1);
  auto fold = [&](expr::Id condition, bool second) {
    const expr::Id power = p.make(Op::exp2, {moving}), zero = p.literal(0.0);
    f.body.values = {p.make(Op::select, {condition, second ? power : zero, second ? zero : power})};
    return emit::fold_terms(p, f, true);
  };
  const expr::Id asks_row = p.make(Op::is_nan, {of_row}), asks_column = p.make(Op::is_nan, {moving});
  EXPECT_EQ(fold(asks_row, false).empty, asks_row);
  EXPECT_EQ(fold(asks_row, true).empty, p.make(Op::flip, {asks_row}));
  EXPECT_TRUE(fold(asks_row, false).power);
  EXPECT_FALSE(fold(asks_column, false).empty);
  EXPECT_FALSE(fold(asks_column, false).power);
  const expr::Id j = p.leaf(Op::coord, expr::Type::index, column), i = p.leaf(Op::coord, expr::Type::index, row);
  const expr::Id at = p.make(Op::add, {p.make(Op::mul, {p.literal(expr::whole(7)), i}), j});
  EXPECT_EQ(emit::slope(p, at, column), 1);
  EXPECT_EQ(emit::slope(p, at, row), 7);
  EXPECT_FALSE(emit::slope(p, p.make(Op::mul, {at, j}), column));
}
