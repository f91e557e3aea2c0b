// Error bounds against values derived by hand. u = 2^-24.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/verify/bound.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/recurrence.hpp"

using namespace tang;
using namespace tang::ir;

namespace {
const double u = std::ldexp(1.0, -24);

eval::Array bound_of(Builder& b, const eval::Inputs& in) {
  return verify::error_bounds(b.graph(), in, verify::single()).at("y");
}
} // namespace

TEST(bound, a_sum_of_four_ones_has_gamma_4_times_4) {
  Builder b;
  Tensor x = b.input("x", {2, 4});
  auto [i, k] = axes<"i k">();
  b.output(map({i}, sum(k, x(i, k))), "y");
  const auto e = bound_of(b, {{"x", eval::reals({2, 4}, {1, 1, 1, 1, 1, -1, 1, -1})}});
  // 4u / (1 - 4u) * (1 + 1 + 1 + 1), also where the terms cancel
  for (int r : {0, 1}) EXPECT_NEAR(e.r[size_t(r)] / (16 * u), 1, 1e-5);
}

TEST(bound, a_product_rounds_once_and_a_maximum_never) {
  Builder b;
  Tensor x = b.input("x", {2}), y = b.input("w", {2});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) * y(i)), "y");
  const eval::Inputs in = {{"x", eval::reals({2}, {3, -0.5})}, {"w", eval::reals({2}, {0.7f, 8})}};
  const auto e = bound_of(b, in);
  EXPECT_NEAR(e.r[0] / (u * 3 * double(0.7f)), 1, 1e-6);
  EXPECT_NEAR(e.r[1] / (u * 4), 1, 1e-6);
  Builder c;
  Tensor z = c.input("x", {2, 3});
  auto [r, k] = axes<"r k">();
  c.output(map({r}, max(k, z(r, k))), "y");
  EXPECT_TRUE(bound_of(c, {{"x", eval::reals({2, 3}, {1, 2, 3, 4, 5, 6})}}).r.empty());
}

TEST(bound, an_arg_max_is_certain_only_beyond_the_errors_of_its_candidates) {
  Builder b;
  Tensor x = b.input("x", {2, 3}), s = b.input("s", {3});
  auto [i, k] = axes<"i k">();
  b.output(map({i}, fold(argmax(), k, {x(i, k) * s(k), iota(k)})[1]), "y");
  // 0.3 * 3 against 0.9 * 1: nearer than a rounding; 1 * 3 against 2 * 1: far apart
  const auto e =
      bound_of(b, {{"x", eval::reals({2, 3}, {0.3f, 0.9f, 0, 1, 2, 0})}, {"s", eval::reals({3}, {3, 1, 1})}});
  EXPECT_EQ(e.r[0], HUGE_VAL);
  EXPECT_EQ(e.r[1], 0);
  // The same with the larger one second: that the first is no winner is uncertain too.
  EXPECT_EQ(bound_of(b, {{"x", eval::reals({2, 3}, {0.9f, 0.3f, 0, 2, 1, 0})}, {"s", eval::reals({3}, {1, 3, 1})}}).r[0],
            HUGE_VAL);
}

TEST(bound, a_floor_near_a_whole_number_may_be_one_off) {
  Builder b;
  Tensor x = b.input("x", {2});
  auto [i] = axes<"i">();
  b.output(map({i}, floor(x(i) * 3.0)), "y");
  // 3 * float(1/3) = 1.00000003: within u of 1, so 0 or 1; 3 * 0.5 = 1.5 is 1
  const auto e = bound_of(b, {{"x", eval::reals({2}, {double(1.0f / 3), 0.5})}});
  EXPECT_EQ(e.r[0], 1);
  EXPECT_EQ(e.r[1], 0);
}

// An index that may be another decides the bound beside which it stands, and nothing where that fails: there it is
// read outside its array.
TEST(bound, an_uncertain_index_counts_where_the_bounds_beside_it_hold) {
  Builder b;
  Tensor x = b.input("x", {2, 3}), s = b.input("s", {3}), z = b.input("z", {4});
  auto [i, k] = axes<"i k">();
  const Tensor where = map({i}, fold(argmax(), k, {x(i, k) * s(k), iota(k)})[1]);
  Axis t = axis("t", 4);
  const Index at(where(Index(t) - Index(2)));
  b.output(map({t}, or_else(masked(Index(t) >= Index(2) && Index(t) == at + Index(2), z(t)), 0.0)), "y");
  const auto e = bound_of(b, {{"x", eval::reals({2, 3}, {0.9f, 0.3f, 0, 1, 3, 0})},
                              {"s", eval::reals({3}, {1, 3, 1})},
                              {"z", eval::reals({4}, {1, 1, 1, 1})}});
  EXPECT_EQ(e.r[0], 0);
  EXPECT_EQ(e.r[1], 0);
  EXPECT_EQ(e.r[2], HUGE_VAL);
  EXPECT_EQ(e.r[3], 0);
}

TEST(bound, errors_pass_through_a_recurrence) {
  Builder b;
  Tensor h0 = b.input("h", {1}), a = b.input("a", {3});
  Axis t = axis("t", 3), i = axis("i", Extent(1));
  const Recurred r = recur(t, {carried("s", h0)}, [&](const std::vector<Tensor>& old) -> Step {
    return {{map({i}, old[0](i) * a(t))}, {}};
  });
  b.output(r.states[0], "y");
  // 2 * 1.5 * 1.5 * 1.5: three products, (1 + u)^3 - 1 of 6.75
  const auto e = bound_of(b, {{"h", eval::reals({1}, {2})}, {"a", eval::reals({3}, {1.5, 1.5, 1.5})}});
  EXPECT_NEAR(e.r[0] / (3 * u * 6.75), 1, 1e-5);
}
