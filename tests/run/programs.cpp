// Whole programs on this CPU against the oracle.
#include "run/harness.hpp"
#include "tang/ir/monoids.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
Graph causal_attention(int64_t heads, int64_t n, int64_t d, int64_t c) {
  Builder b;
  Tensor q = b.input("q", {heads, n, d}), k = b.input("k", {heads, n, d}), v = b.input("v", {heads, n, c});
  auto [h, i, j, x, o] = axes<"h i j x o">();
  Scalar s = masked(j <= i, sum(x, q(h, i, x) * k(h, j, x)) / std::sqrt(double(d)));
  Scalar w = exp(s - max(j, s));
  b.output(map({h, i, o}, ratio(sum(j, w * v(h, j, o)), sum(j, w))), "y");
  return b.graph();
}
}  // namespace

TEST(run, causal_attention) {
  expect_program(causal_attention(2, 64, 64, 64));
  expect_program(causal_attention(2, 300, 64, 64));
  expect_program(causal_attention(1, 77, 5, 20));
}
TEST(run, matmul_bias_relu) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 7, 9}, {17, 33, 65}, {200, 300, 500}, {97, 1025, 31}}) {
    Builder b;
    Tensor x = b.input("x", {m, k}), w = b.input("w", {k, n}), c = b.input("c", {n});
    auto [i, j, l] = axes<"i j l">();
    b.output(map({i, j}, relu(sum(l, x(i, l) * w(l, j)) + c(j))), "y");
    expect_program(b.graph());
  }
}
TEST(run, softmax_and_norms_over_rows) {
  for (int64_t n : {1, 7, 64, 100, 5000}) {
    Builder b;
    Tensor x = b.input("x", {6, n}), gain = b.input("gain", {n});
    auto [i, j] = axes<"i j">();
    Scalar e = exp(x(i, j) - max(j, x(i, j)));
    b.output(map({i, j}, e / sum(j, e)), "softmax");
    Scalar mean = sum(j, x(i, j)) / double(n), gap = x(i, j) - mean;
    b.output(map({i, j}, gap / sqrt(sum(j, gap * gap) / double(n) + 1e-5) * gain(j)), "norm");
    b.output(map({i}, fold(argmax(), j, {x(i, j), iota(j)})[1]), "at");
    expect_program(b.graph());
  }
}
