// Each form of lowering on graphs whose sizes divide nothing, in the simulator.
#include "lower/pipeline.hpp"
#include "tang/ir/monoids.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

TEST(lower, map_of_two_inputs) {
  Builder b;
  Tensor x = b.input("x", {5, 7}), y = b.input("y", {7});
  auto [i, j] = axes<"i j">();
  b.output(map({i, j}, x(i, j) * y(j) + 1), "z");
  expect_derived(b.graph());
}
TEST(lower, row_sum_and_max) {
  Builder b;
  Tensor x = b.input("x", {5, 37});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, x(i, j))), "s");
  b.output(map({i}, max(j, x(i, j))), "m");
  expect_derived(b.graph());
}
TEST(lower, column_sum) {
  Builder b;
  Tensor x = b.input("x", {5, 37});
  auto [i, j] = axes<"i j">();
  b.output(map({j}, sum(i, x(i, j))), "s");
  expect_derived(b.graph());
}
TEST(lower, softmax_rows) {
  Builder b;
  Tensor x = b.input("x", {6, 33});
  auto [i, j] = axes<"i j">();
  Scalar e = exp(x(i, j) - max(j, x(i, j)));
  b.output(map({i, j}, e / sum(j, e)), "y");
  expect_derived(b.graph());
}
TEST(lower, matmul_of_odd_sizes) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{5, 3, 2}, {13, 17, 19}, {64, 40, 33}, {100, 72, 50}}) {
    Builder b;
    Tensor x = b.input("x", {m, k}), w = b.input("w", {k, n}), c = b.input("c", {n});
    auto [i, j, l] = axes<"i j l">();
    b.output(map({i, j}, relu(sum(l, x(i, l) * w(l, j)) + c(j))), "y");
    expect_derived(b.graph());
  }
}
TEST(lower, causal_attention) {
  for (auto [n, m, d, c] : {std::array<int64_t, 4>{9, 9, 4, 3}, {40, 40, 8, 8}, {33, 150, 5, 20}}) {
    Builder b;
    Tensor q = b.input("q", {2, n, d}), k = b.input("k", {2, m, d}), v = b.input("v", {2, m, c});
    auto [h, i, j, x, o] = axes<"h i j x o">();
    Scalar s = masked(j <= i, sum(x, q(h, i, x) * k(h, j, x)) * 0.5);
    Scalar w = exp(s - max(j, s));
    b.output(map({h, i, o}, ratio(sum(j, w * v(h, j, o)), sum(j, w))), "y");
    expect_derived(b.graph());
  }
}
TEST(lower, argmax_rows) {
  Builder b;
  Tensor x = b.input("x", {4, 29});
  auto [i, j] = axes<"i j">();
  auto s = fold(argmax(), j, {x(i, j), iota(j)});
  b.output(map({i}, s[1]), "at");
  expect_derived(b.graph());
}
TEST(lower, padded_convolution) {
  Builder b;
  Tensor x = b.input("x", {2, 3, 11}), f = b.input("f", {4, 3, 3});
  auto n = axis("n"), o = axis("o"), ci = axis("ci"), r = axis("r"), a = axis("a", Extent(11));
  b.output(map({n, o, a}, sum({ci, r}, x.at_or(0, {n, ci, Index(a) + Index(r) - Index(1)}) * f(o, ci, r))), "y");
  expect_derived(b.graph());
}
TEST(lower, gather) {
  Builder b;
  Tensor table = b.input("table", {9, 5}), ids = b.input("ids", {6}, Format::i32);
  auto [t, d] = axes<"t d">();
  b.output(map({t, d}, table(ids(t), d) * 2), "e");
  expect_derived(b.graph(), {{"ids", eval::indices({6}, {0, 8, 3, 3, 1, 7})}});
}
