// The oracle on graphs small enough to check by hand, and on cases with golden values.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/eval/oracle.hpp"
#include "tang/ir/monoids.hpp"

using namespace tang;
using namespace tang::ir;
using eval::Array;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

// u(s, n): sin(s + 0.7 i), the filling of the golden cases.
Array u(double s, std::vector<int64_t> shape) {
  std::vector<double> v(size_t(eval::volume(shape)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(s + 0.7 * double(i));
  return eval::reals(shape, v);
}
// One head of attention: o[i, c] and lse[i], keys where `visible` holds.
template <class F>
Graph attention(int64_t n, int64_t m, int64_t d, double scale, F visible) {
  Builder b;
  Tensor q = b.input("q", {n, d}), k = b.input("k", {m, d}), v = b.input("v", {m, d});
  auto [i, j, x, c] = axes<"i j x c">();
  Scalar dot = sum(x, q(i, x) * k(j, x)) * scale;
  Scalar score = masked(visible(i, j), dot);
  Scalar top = max(j, score);
  Scalar weight = exp(score - top);
  Scalar total = sum(j, weight);
  b.output(map({i, c}, ratio(sum(j, weight * v(j, c)), total)), "out");
  b.output(map({i}, top + log(total)), "lse");
  return b.graph();
}
double total(const Array& a) {
  double s = 0;
  for (double v : a.r) s += v;
  return s;
}
}  // namespace

TEST(oracle, matmul_and_matvec) {
  Builder b;
  Tensor a = b.input("a", {2, 3}), w = b.input("w", {3, 2});
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i, j}, sum(k, a(i, k) * w(k, j))), "y");
  const Graph g = b.graph();
  validate(g);
  auto out = eval::run(g, {{"a", eval::reals({2, 3}, {1, 2, 3, 4, 5, 6})}, {"w", eval::reals({3, 2}, {1, 0, 0, 1, 1, 1})}});
  EXPECT_EQ(out["y"].r, (std::vector<double>{4, 5, 10, 11}));
}
TEST(oracle, causal_attention_with_a_dead_row) {
  const Graph g = attention(5, 5, 4, 0.5, [](Axis i, Axis j) { return j <= i && i != Index(2); });
  auto out = eval::run(g, {{"q", u(1, {5, 4})}, {"k", u(2, {5, 4})}, {"v", u(3, {5, 4})}});
  EXPECT_NEAR(out["out"].r[0], 0.141120008060, 1e-12);
  EXPECT_NEAR(out["out"].r[19], -0.107711134042, 1e-12);
  EXPECT_NEAR(total(out["out"]), -2.027835597591, 1e-11);
  EXPECT_NEAR(out["lse"].r[0], 0.491165939644, 1e-12);
  EXPECT_NEAR(out["lse"].r[4], 1.708652443551, 1e-12);
  for (int c = 0; c < 4; ++c) EXPECT_EQ(out["out"].r[size_t(8 + c)], 0);
  EXPECT_EQ(out["lse"].r[2], -inf);
}
TEST(oracle, bottom_right_causal) {
  const Graph g = attention(6, 2, 4, 0.5, [](Axis i, Axis j) { return j <= Index(i) - Index(4); });
  auto out = eval::run(g, {{"q", u(1, {6, 4})}, {"k", u(2, {2, 4})}, {"v", u(3, {2, 4})}});
  for (int k = 0; k < 16; ++k) EXPECT_EQ(out["out"].r[size_t(k)], 0);
  EXPECT_NEAR(out["out"].r[16], 0.141120008060, 1e-12);
  EXPECT_NEAR(out["out"].r[20], 0.018027316847, 1e-12);
}
TEST(oracle, orders_agree_for_associative_monoids) {
  Builder b;
  Tensor x = b.input("x", {7, 100});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, logsumexp(j, x(i, j))), "lse");
  auto [n, mean, spread] = [&] { auto s = fold(welford(), j, {1.0, x(i, j), 0.0}); return std::tuple(s[0], s[1], s[2]); }();
  b.output(map({i}, spread / n), "var");
  auto [value, at] = [&] { auto s = fold(argmax(), j, {x(i, j), iota(j)}); return std::pair(s[0], s[1]); }();
  b.output(map({i}, at), "at");
  const Graph g = b.graph();
  const Array data = u(1, {7, 100});
  auto seq = eval::run(g, {{"x", data}});
  for (auto order : {FoldOrder{FoldOrder::tree, 8}, FoldOrder{FoldOrder::split, 7}, FoldOrder{FoldOrder::tree, 13}}) {
    eval::Options o;
    o.order = order;
    o.threads = 2;
    auto other = eval::run(g, {{"x", data}}, o);
    EXPECT_LT(eval::difference(other["lse"], seq["lse"]), 1e-14);
    EXPECT_LT(eval::difference(other["var"], seq["var"]), 1e-14);
    EXPECT_EQ(eval::difference(other["at"], seq["at"]), 0);
  }
}
TEST(oracle, empty_folds_give_the_identity) {
  Builder b;
  Tensor x = b.input("x", {2, 0, 3});
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i, k}, sum(j, x(i, j, k))), "s");
  b.output(map({i, k}, max(j, x(i, j, k))), "m");
  auto out = eval::run(b.graph(), {{"x", eval::reals({2, 0, 3}, {})}});
  for (double v : out["s"].r) EXPECT_EQ(v, 0);
  for (double v : out["m"].r) EXPECT_EQ(v, -inf);
}
TEST(oracle, reading_outside_is_an_error_with_the_line) {
  Builder b;
  Tensor x = b.input("x", {4});
  auto [i] = axes<"i">();
  Scalar here = x(i);
  b.output(map({i}, here + x(Index(i) - Index(1)), "shifted"), "y");
  try {
    eval::run(b.graph(), {{"x", u(1, {4})}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("basics.cpp"), std::string::npos) << e.what();
  }
}
TEST(oracle, max_pooling_pads_with_the_identity) {
  Builder b;
  Tensor x = b.input("x", {2});
  auto i = axis("i", Extent(2)), r = axis("r", Extent(3));
  b.output(map({i}, max(r, x.where_in_range({Index(i) + Index(r) - Index(1)}))), "y");
  auto out = eval::run(b.graph(), {{"x", eval::reals({2}, {-1, -2})}});
  EXPECT_EQ(out["y"].r, (std::vector<double>{-1, -1}));
}
TEST(monoids, which_are_absorbing) {
  Builder b;
  Pool p;
  auto made = [&](const MonoidSpec& s) {
    Monoid m{s.name, s.identity, {}, s.commutative};
    std::vector<expr::E> x, y;
    for (size_t c = 0; c < s.identity.size(); ++c) {
      x.push_back({&p, p.leaf(Op::var, s.identity[c].type, int64_t(2 * c))});
      y.push_back({&p, p.leaf(Op::var, s.identity[c].type, int64_t(2 * c + 1))});
    }
    for (auto& e : s.combine(p, x, y)) m.combine.push_back(e.id);
    return m;
  };
  for (auto& s : {sum_of_reals(), online_softmax(1), online_softmax(3)}) {
    auto a = absorbing(p, made(s));
    EXPECT_TRUE(bool(a)) << s.name << ": " << a.why();
  }
  EXPECT_FALSE(bool(absorbing(p, made(welford()))));
  EXPECT_FALSE(bool(absorbing(p, made(max_of_reals()))));
  EXPECT_FALSE(bool(absorbing(p, made(argmax()))));
}
