// Blocks of lanes, their order, panels of products: whatever serves speed leaves the sums as plain loops make them,
// term by term in order, to the bit.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/eval/oracle.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;

namespace {
eval::Array data(double s, std::vector<int64_t> shape) {
  std::vector<double> v(size_t(eval::volume(shape)));
  for (size_t k = 0; k < v.size(); ++k) v[k] = std::sin(s + 0.7 * double(k)) * (1 + double(k % 13));
  return eval::reals(std::move(shape), std::move(v));
}

eval::Array one(const Graph& g, const eval::Inputs& in, int threads) {
  eval::Options o;
  o.threads = threads;
  return eval::run(g, in, o).at("y");
}
} // namespace

// Products of one, two and three factors; rows that are long, short, a lane more than a block; strides that are not 1.
TEST(walk, sums_of_products_are_those_of_plain_loops) {
  for (int64_t m : {1, 3, 31, 33, 65})
    for (int64_t n : {1, 16, 40, 130})
      for (int64_t d : {0, 1, 64, 67})
        for (int kind = 0; kind < 4; ++kind) {
          Builder b;
          Tensor x = b.input("x", {m, d}), w = b.input("w", {d, n}), s = b.input("s", {m}), t = b.input("t", {n, d});
          auto [i, j, k] = axes<"i j k">();
          const Scalar term = kind == 0   ? x(i, k) * w(k, j)
                              : kind == 1 ? s(i) * (x(i, k) * t(j, k))
                              : kind == 2 ? x(i, k) * (w(k, j) * t(j, k))
                                          : t(j, k);
          b.output(kind == 3 ? map({j}, sum(k, term)) : map({i, j}, sum(k, term)), "y");
          const eval::Inputs in{{"x", data(1, {m, d})}, {"w", data(2, {d, n})}, {"s", data(3, {m})}, {"t", data(4, {n, d})}};
          const auto &X = in.at("x").r, &W = in.at("w").r, &S = in.at("s").r, &T = in.at("t").r;
          std::vector<double> want;
          for (int64_t a = 0; a < (kind == 3 ? 1 : m); ++a)
            for (int64_t c = 0; c < n; ++c) {
              double sum = 0;
              for (int64_t e = 0; e < d; ++e) {
                const double p = X[size_t(a * d + e)], q = W[size_t(e * n + c)], r = T[size_t(c * d + e)];
                const double inner = kind == 1 ? p * r : q * r;
                sum += kind == 0 ? p * q : kind == 1 ? S[size_t(a)] * inner : kind == 2 ? p * inner : r;
              }
              want.push_back(sum);
            }
          for (int threads : {1, 2}) EXPECT_EQ(one(b.graph(), in, threads).r, want) << m << " " << n << " " << d << " " << kind;
        }
}

// A softmax times values, with the heads as the last axis of the result: scores are one value for all columns.
TEST(walk, what_all_lanes_share_is_computed_once_and_right) {
  const int64_t n = 9, c = 70, h = 3;
  Builder b;
  Tensor s = b.input("s", {n, n, h}), v = b.input("v", {n, c, h});
  auto [i, j, e, a] = axes<"i j e a">();
  const Scalar score = masked(Index(j) <= Index(i), s(i, j, a)), top = max(j, score), weight = exp(score - top);
  b.output(map({i, e, a}, ratio(sum(j, weight * v(j, e, a)), sum(j, weight))), "y");
  const eval::Inputs in{{"s", data(1, {n, n, h})}, {"v", data(2, {n, c, h})}};
  for (int threads : {1, 2}) {
    const eval::Array y = one(b.graph(), in, threads);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t x = 0; x < c; ++x)
        for (int64_t head = 0; head < h; ++head) {
          double most = -HUGE_VAL, sum = 0, mixed = 0;
          auto at = [&](int64_t k) { return in.at("s").r[size_t((r * n + k) * h + head)]; };
          for (int64_t k = 0; k <= r; ++k) most = std::max(most, at(k));
          for (int64_t k = 0; k <= r; ++k) {
            const double w = std::exp(at(k) - most);
            sum += w, mixed += w * in.at("v").r[size_t((k * c + x) * h + head)];
          }
          EXPECT_NEAR(y.r[size_t((r * c + x) * h + head)], mixed / sum, 1e-12);
        }
  }
}
