// Part B of the cases: reductions and number formats, and what the other parts say about numbers.
#include "cases/everywhere.hpp"
#include "tang/base/number.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/softmax.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;
using ir::FoldOrder;

namespace {
const double nan_ = std::nan("");

// Nodes named `name` under n, the others exact.
void set(eval::Options& o, const Graph& g, const std::string& name, eval::Numeric n) {
  bool found = false;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].name == name) o.numerics[id] = n, found = true;
  EXPECT_TRUE(found) << name;
}

eval::Options only(const Graph& g, const std::string& name, eval::Numeric n) {
  eval::Options o;
  set(o, g, name, n);
  return o;
}

// Every node of the graph that computes a real.
eval::Options all(const Graph& g, eval::Numeric n) {
  eval::Options o;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (!g[id].input()) o.numerics[id] = n;
  return o;
}

std::vector<FoldOrder> orders() {
  return {{},
          {FoldOrder::tree, 8},
          {FoldOrder::tree, 16},
          {FoldOrder::tree, 32},
          {FoldOrder::tree, 64},
          {FoldOrder::tree, 13},
          {FoldOrder::split, 7},
          {FoldOrder::chunked, 128}};
}

Array rounded(Array a, Format f) {
  for (double& v : a.r) v = ir::rounded(v, f);
  return a;
}
} // namespace

TEST(cases, case_28_nan_is_propagated_and_the_first_one_wins) {
  std::vector<double> thousand(1000, 1);
  thousand[777] = nan_;
  for (auto& [x, where_] : std::vector<std::pair<std::vector<double>, int64_t>>{
           {{nan_, 4.6151}, 0}, {{1, nan_, 3, nan_}, 1}, {thousand, 777}})
    for (auto& order : orders()) {
      Builder b;
      Tensor in = b.input("x", {int64_t(x.size())});
      const Axis i = axis("i"), one = axis("one", Extent(1));
      const auto best = fold(argmax(), i, {in(i), iota(i)});
      b.output(map({one}, best[1]), "at");
      b.output(map({one}, max(i, in(i))), "max");
      b.output(map({one}, min(i, in(i))), "min");
      eval::Options o;
      o.order = order;
      auto out = everywhere(b.graph(), {{"x", eval::reals({int64_t(x.size())}, x)}}, o);
      EXPECT_EQ(out["at"].i[0], where_);
      EXPECT_TRUE(std::isnan(out["max"].r[0]));
      EXPECT_TRUE(std::isnan(out["min"].r[0]));
    }
}

TEST(cases, case_29_ties_go_to_the_smaller_index) {
  auto at = [](const std::vector<double>& x, FoldOrder order) {
    Builder b;
    Tensor in = b.input("x", {int64_t(x.size())});
    const Axis i = axis("i"), one = axis("one", Extent(1));
    b.output(map({one}, fold(argmax(), i, {in(i), iota(i)})[1]), "at");
    eval::Options o;
    o.order = order;
    return everywhere(b.graph(), {{"x", eval::reals({int64_t(x.size())}, x)}}, "at", o).i[0];
  };
  for (auto& order : orders()) {
    EXPECT_EQ(at({2, 2}, order), 0);
    EXPECT_EQ(at({-3, -3}, order), 0);
    EXPECT_EQ(at({-inf, -inf, -inf}, order), 0);
    uint64_t seed = 1;
    for (int row = 0; row < 20; ++row) {
      std::vector<double> x;
      for (int k = 0; k < 20; ++k) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x.push_back(double(int64_t(seed >> 33) % 201 - 100));
      }
      EXPECT_EQ(at(x, order), std::max_element(x.begin(), x.end()) - x.begin());
    }
  }
}

TEST(cases, case_33_variance_of_values_far_from_zero) {
  const double means[4] = {0, 100, 1000, 10000}, first[4] = {-1.341641, -1.341528, -1.341508, -1.331333},
               last[4] = {1.341641, 1.341357, 1.344237, 1.331333};
  Array x = filled({4, 16}, 0);
  for (size_t r = 0; r < 4; ++r)
    for (size_t k = 0; k < 16; ++k) x.r[r * 16 + k] = double(float(means[r] + double(k) * 1e-3));
  // Deviations from the row's first value are exact in f32, and so is all that is made of them: 1e-3 and better.
  Builder shifted;
  Tensor far = shifted.input("x", {4, 16});
  auto [row, at] = axes<"row at">();
  shifted.output(layer_norm(map({row, at}, far(row, at) - far(row, 0)), {}, {}), "y");
  const Array near = everywhere(shifted.graph(), {{"x", x}}, "y");
  for (size_t r = 0; r < 4; ++r) EXPECT_NEAR(near.r[r * 16], first[r], 1e-3) << r;
  for (auto how : {Variance::two_pass, Variance::welford}) {
    Builder b;
    b.output(layer_norm(b.input("x", {4, 16}), {}, {}, {1e-5, how}), "y");
    const Graph g = b.graph();
    const Array exact = eval::run(g, {{"x", x}}).at("y"),
                f32 = everywhere(g, {{"x", x}}, "y", all(g, {Format::f32, Format::f32, {FoldOrder::tree, 16}}));
    for (size_t r = 0; r < 4; ++r) {
      EXPECT_NEAR(exact.r[r * 16], first[r], 2e-6) << r;
      EXPECT_NEAR(exact.r[r * 16 + 15], last[r], 2e-6) << r;
      // A step of f32 at the mean, in deviations: what no f32 order can avoid.
      const double step = (std::nextafter(float(means[r]), 1e9f) - float(means[r])) / 0.0056;
      EXPECT_NEAR(f32.r[r * 16], first[r], std::max(1e-3, 2 * step)) << r;
    }
  }
  // The sum of squares loses everything, and the emulator says so.
  Builder b;
  Tensor in = b.input("x", {4, 16});
  auto [r, k] = axes<"r k">();
  const Scalar mean = sum(k, in(r, k)) / 16, square_ = sum(k, square(in(r, k))) / 16;
  b.output(map({r, k}, (in(r, k) - mean) / sqrt(max(square_ - mean * mean, 0.0) + 1e-5)), "y");
  const Graph g = b.graph();
  const Array bad = everywhere(g, {{"x", x}}, "y", all(g, {Format::f32, Format::f32, {}}));
  EXPECT_GT(std::fabs(bad.r[48] - first[3]), 0.5);
}

TEST(cases, case_35_variance_of_huge_values) {
  Builder b;
  b.output(layer_norm(b.input("x", {4}), {}, {}, {1e-5, Variance::two_pass, true}), "y");
  const Graph g = b.graph();
  const Inputs in{{"x", eval::reals({4}, {1e30, -1e30, 1e30, -1e30})}};
  expect_near(eval::run(g, in).at("y"), {1, -1, 1, -1}, 1e-12);
  // In f32 the variance is inf: the emulator predicts the zeros, so a budget can refuse the schedule.
  const Array f32 = everywhere(g, in, "y", all(g, {Format::f32, Format::f32, {}}));
  for (double v : f32.r) EXPECT_FALSE(std::fabs(v) > 0.5) << v;
}

TEST(cases, case_36_moments_stored_in_bf16) {
  Array x = filled({1, 1, 1024}, 0);
  for (size_t k = 0; k < 1024; ++k) x.r[k] = k % 2 ? 4.9 : 5.1;
  x = rounded(x, Format::bf16);
  EXPECT_EQ(x.r[0], 5.09375);
  EXPECT_EQ(x.r[1], 4.90625);
  Builder b;
  const Normed n = batch_norm(b.input("x", {1, 1, 1024}), {}, {});
  b.output(n.y, "y");
  b.output(n.mean, "mean");
  b.output(n.variance, "var");
  const Graph g = b.graph();
  eval::Options o;
  set(o, g, "sum", {Format::f32, Format::f32, {}});
  set(o, g, "batch_mean", {Format::bf16, Format::f32, {}});
  set(o, g, "batch_variance", {Format::bf16, Format::f32, {}});
  for (auto& how : {eval::Options{}, o}) {
    auto out = everywhere(g, {{"x", x}}, how);
    EXPECT_EQ(out["mean"].r[0], 5.0);
    EXPECT_NEAR(out["var"].r[0], 0.0087890625, 1e-12);
    EXPECT_NEAR(out["y"].r[0], 0.9994, 1e-4);
    EXPECT_NEAR(out["y"].r[1], -0.9994, 1e-4);
  }
  // Squares summed in bf16: no variance is left.
  Builder c;
  Tensor in = c.input("x", {1024});
  const Axis k = axis("k"), one = axis("one", Extent(1));
  const Tensor mean = map({one}, sum(k, in(k)) / 1024, "mean"),
               power = map({one}, sum(k, square(in(k))) / 1024, "power");
  c.output(map({one}, power(one) - mean(one) * mean(one)), "var");
  const Graph h = c.graph();
  eval::Options narrow;
  set(narrow, h, "power", {Format::bf16, Format::f32, {}});
  set(narrow, h, "mean", {Format::bf16, Format::f32, {}});
  EXPECT_LE(everywhere(h, {{"x", eval::reals({1024}, x.r)}}, "var", narrow).r[0], 0);
}

TEST(cases, case_39_logsumexp_at_infinity) {
  auto lse = [](const std::vector<double>& x, FoldOrder order) {
    Builder b;
    b.output(log_sum_exp(b.input("x", {1, int64_t(x.size())})), "y");
    eval::Options o;
    o.order = order;
    return everywhere(b.graph(), {{"x", eval::reals({1, int64_t(x.size())}, x)}}, "y", o).r[0];
  };
  for (auto& order : orders()) {
    EXPECT_EQ(lse({-inf, -inf}, order), -inf);
    EXPECT_EQ(lse({-inf}, order), -inf);
    EXPECT_EQ(lse({}, order), -inf);
    EXPECT_NEAR(lse({1000, 1000}, order), 1000.6931471806, 1e-9);
    EXPECT_NEAR(lse({-1000, -1000}, order), -999.3068528194, 1e-9);
    EXPECT_EQ(lse({1e30, 0}, order), 1e30);
    EXPECT_EQ(lse({inf, 1}, order), inf);
    EXPECT_TRUE(std::isnan(lse({nan_, 1}, order)));
  }
  // As a prefix fold whose first terms are -inf, both as the monoid and as written with a maximum.
  Builder b;
  Tensor x = b.input("x", {4});
  const Axis i = axis("i", Extent(4)), j = axis("j");
  b.output(map({i}, ir::logsumexp(j, masked(j <= i, x(j)))), "scan");
  b.output(map({i}, attend(j, masked(j <= i, x(j)), 1.0).lse), "lse");
  auto out = everywhere(b.graph(), {{"x", eval::reals({4}, {-inf, -inf, 3, 3})}});
  for (const char* n : {"scan", "lse"}) {
    EXPECT_EQ(out[n].r[0], -inf) << n;
    EXPECT_EQ(out[n].r[1], -inf) << n;
    EXPECT_NEAR(out[n].r[2], 3, 1e-15) << n;
    EXPECT_NEAR(out[n].r[3], 3 + std::log(2), 1e-14) << n;
  }
}

TEST(cases, case_41_a_narrow_running_sum_saturates) {
  auto ones = [](int64_t n, eval::Numeric how) {
    Builder b;
    Tensor x = b.input("x", {n});
    const Axis i = axis("i"), one = axis("one", Extent(1));
    b.output(map({one}, sum(i, x(i))), "s");
    const Graph g = b.graph();
    return everywhere(g, {{"x", filled({n}, 1)}}, "s", only(g, "sum", how)).r[0];
  };
  const Format f16 = Format::f16, bf16 = Format::bf16, f32 = Format::f32;
  EXPECT_EQ(ones(4096, {f16, f16, {}}), 2048);                    // predicted, so a budget can refuse it
  EXPECT_EQ(ones(4096, {f16, f16, {FoldOrder::tree, 64}}), 4096); // another order, another prediction
  EXPECT_EQ(ones(4096, {f16, f32, {}}), 4096);
  EXPECT_EQ(ones(512, {bf16, bf16, {}}), 256);
  EXPECT_EQ(ones(512, {bf16, f32, {}}), 512);
  EXPECT_EQ(ones(70000, {bf16, bf16, {}}), 256);
  EXPECT_EQ(ones(70000, {bf16, f32, {}}), 70144);
  // A softmax of 512 equal scores.
  Builder b;
  b.output(softmax(b.input("x", {512}), true), "p");
  const Graph g = b.graph();
  eval::Options narrow = only(g, "sum", {bf16, bf16, {}}), wide = only(g, "sum", {bf16, f32, {}});
  EXPECT_EQ(everywhere(g, {{"x", filled({512}, 3)}}, "p", narrow).r[0], 1.0 / 256);
  EXPECT_EQ(everywhere(g, {{"x", filled({512}, 3)}}, "p", wide).r[0], 1.0 / 512);
}

TEST(cases, case_42_a_mean_that_fits_though_its_sum_does_not) {
  Builder b;
  Tensor x = b.input("x", {100}, Format::f16);
  const Axis i = axis("i"), one = axis("one", Extent(1));
  b.output(map({one}, sum(i, x(i)) / 100, "mean"), "mean");
  const Graph g = b.graph();
  const Inputs in{{"x", filled({100}, 1000)}};
  eval::Options stored, epilogue;
  set(stored, g, "sum", {Format::f16, Format::f32, {}});
  set(stored, g, "mean", {Format::f16, Format::f32, {}});
  set(epilogue, g, "sum", {Format::f32, Format::f32, {}}); // the epilogue reads the accumulator
  set(epilogue, g, "mean", {Format::f16, Format::f32, {}});
  EXPECT_EQ(everywhere(g, in, "mean", stored).r[0], inf);
  EXPECT_EQ(everywhere(g, in, "mean", epilogue).r[0], 1000);
  EXPECT_NEAR(everywhere(g, in, "mean").r[0], 1000, 1e-10);
}

TEST(cases, case_44_small_values_to_f16) {
  EXPECT_EQ(ir::rounded(std::ldexp(1, -20), Format::f16), 9.5367431640625e-07);
  EXPECT_EQ(ir::rounded(6e-8, Format::f16), std::ldexp(1, -24));
  EXPECT_NEAR(ir::rounded(6e-8, Format::f16), 5.96046447754e-08, 1e-19);
  EXPECT_EQ(ir::rounded(1e-8, Format::f16), 0);
  EXPECT_EQ(ir::rounded(65519, Format::f16), 65504);
  EXPECT_EQ(ir::rounded(65520, Format::f16), inf);
  EXPECT_EQ(ir::rounded(-std::ldexp(1, -25), Format::f16), 0);
  EXPECT_TRUE(std::signbit(ir::rounded(-std::ldexp(1, -25), Format::f16)));
  // The same through a stored map.
  Builder b;
  Tensor x = b.input("x", {3});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) * 1.0, "copy"), "y");
  const Graph g = b.graph();
  EXPECT_EQ(everywhere(g, {{"x", eval::reals({3}, {std::ldexp(1, -20), 65519, 65520})}}, "y",
                  only(g, "copy", {Format::f16, Format::f16, {}}))
                .r,
            (std::vector<double>{std::ldexp(1, -20), 65504, inf}));
}

TEST(cases, case_45_one_result_for_every_lane_and_every_run) {
  Builder b;
  Tensor x = b.input("x", {3, 1000});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, x(i, j))), "s");
  const Graph g = b.graph();
  Array data = u(1, {3, 1000});
  for (size_t k = 0; k < 1000; ++k) data.r[k] = double(k % 7);
  for (auto& order : orders()) {
    eval::Options o;
    o.order = order;
    const Array first = everywhere(g, {{"x", data}}, "s", o);
    EXPECT_EQ(first.r[0], 2997);
    for (int again = 0; again < 10; ++again) {
      o.threads = 1 + again % 2;
      EXPECT_EQ(everywhere(g, {{"x", data}}, "s", o).r, first.r);
    }
  }
}

TEST(cases, case_91_infinity_and_nan_are_values) {
  Builder b;
  Tensor x = b.input("x", {2}), y = b.input("y", {2});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) * inf), "times");
  b.output(map({i}, is_nan(y(i))), "nan");
  b.output(map({i}, !(y(i) == y(i))), "differs");
  b.output(map({i}, x(i) * inf - x(i) * inf), "minus");
  auto out = everywhere(b.graph(), {{"x", eval::reals({2}, {2, 3})}, {"y", eval::reals({2}, {nan_, 1})}});
  EXPECT_EQ(out["times"].r, (std::vector<double>{inf, inf}));
  EXPECT_EQ(out["nan"].i, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(out["differs"].i, (std::vector<int64_t>{1, 0})); // x == x does not fold to true
  EXPECT_TRUE(std::isnan(out["minus"].r[0]));
}

TEST(cases, case_95_every_width_of_a_tree_sums_the_same_integers) {
  Builder b;
  Tensor x = b.input("x", {1000});
  const Axis i = axis("i"), one = axis("one", Extent(1));
  b.output(map({one}, sum(i, x(i))), "s");
  const Graph g = b.graph();
  Array data = filled({1000}, 0);
  for (size_t k = 0; k < 1000; ++k) data.r[k] = double(k % 7);
  for (int64_t width : {8, 16, 32, 64, 128, 256})
    EXPECT_EQ(
        everywhere(g, {{"x", data}}, "s", only(g, "sum", {Format::f32, Format::f32, {FoldOrder::tree, width}}))
            .r[0],
        2997)
        << width;
}
