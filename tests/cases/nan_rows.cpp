// A row that holds a NaN is NaN, in the oracle and in kernels, as written and derived; its neighbours are not; a row
// of -inf stays 0. Decision 28.
#include "cases/everywhere.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/softmax.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
const double nan_ = std::nan("");

// Rows: numbers; a NaN at `at`; NaN and -inf; -inf alone; numbers.
Array rows(int64_t n, int64_t at) {
  Array x = u(1, {5, n});
  for (int64_t k = 0; k < n; ++k) {
    x.r[size_t(2 * n + k)] = k == at ? nan_ : -inf;
    x.r[size_t(3 * n + k)] = -inf;
  }
  x.r[size_t(n + at)] = nan_;
  return x;
}

// Of each row of y: 'n' all NaN, '0' all 0, '-' all -inf, '+' numbers that are not.
std::string kinds(const Array& y) {
  std::string out;
  const int64_t n = y.size() / 5;
  for (int64_t r = 0; r < 5; ++r) {
    auto all = [&](auto holds) {
      return std::all_of(y.r.begin() + r * n, y.r.begin() + (r + 1) * n, holds);
    };
    out += all([](double v) { return std::isnan(v); })      ? 'n'
           : all([](double v) { return v == 0; })           ? '0'
           : all([](double v) { return v == -inf; })        ? '-'
           : all([](double v) { return std::isfinite(v); }) ? '+'
                                                            : '?';
  }
  return out;
}
} // namespace

TEST(nan_rows, softmax_and_what_is_made_of_it) {
  for (int64_t n : {1, 5, 16, 33, 300})
    for (int64_t at : {int64_t(0), n - 1}) {
      Builder b;
      const Tensor x = b.input("x", {5, n});
      b.output(softmax(x), "softmax");
      b.output(softmax(x, true), "stored");
      b.output(log_softmax(x), "log");
      b.output(log_sum_exp(x), "lse");
      b.output(cross_entropy(x, b.input("target", {5}, Format::i32)), "loss");
      auto out = everywhere(b.graph(), {{"x", rows(n, at)}, {"target", eval::indices({5}, {0, 0, 0, 0, 0})}});
      EXPECT_EQ(kinds(out["softmax"]), "+nn0+") << n;
      EXPECT_EQ(kinds(out["stored"]), "+nn0+") << n;
      EXPECT_EQ(kinds(out["lse"]), "+nn-+") << n;
      const std::string log = kinds(out["log"]), loss = kinds(out["loss"]);
      EXPECT_EQ(log.substr(0, 3), n == 1 ? "0nn" : "+nn") << n;
      EXPECT_EQ(log.back(), n == 1 ? '0' : '+') << n;
      EXPECT_EQ(loss.substr(0, 3), n == 1 ? "0nn" : "+nn") << n;
    }
}

// A NaN key that rows 3 and 4 see.
TEST(nan_rows, attention_shows_a_nan_where_its_key_is_seen) {
  Builder b;
  AttentionOptions o;
  o.scale = 0.5;
  o.mask = causal();
  const Attention a = attention(b.input("q", {1, 1, 5, 4}), b.input("k", {1, 1, 5, 4}), b.input("v", {1, 1, 5, 4}), o);
  b.output(a.out, "out");
  b.output(a.lse, "lse");
  Array k = u(2, {1, 1, 5, 4});
  k.r[3 * 4 + 1] = nan_;
  auto out = everywhere(b.graph(), {{"q", u(1, {1, 1, 5, 4})}, {"k", k}, {"v", u(3, {1, 1, 5, 4})}});
  EXPECT_EQ(kinds(out["out"]), "+++nn");
  EXPECT_EQ(kinds(out["lse"]), "+++nn");
}
