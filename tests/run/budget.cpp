// Error budgets: the bound of each order of additions, what it is worth against what happens, and who is refused.
#include "harness.hpp"

#include <cmath>

#include "tang/ir/surface.hpp"
#include "tang/run/budget.hpp"

namespace {
using namespace tang;
using namespace tang::ir;

ir::Graph row_sums(int64_t rows, int64_t columns) {
  ir::Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, x(i, j))), "y");
  return b.graph();
}

ir::Graph products(int64_t m, int64_t n, int64_t k) {
  ir::Builder b;
  Tensor x = b.input("x", {m, k}), w = b.input("w", {k, n});
  auto [i, j, l] = axes<"i j l">();
  b.output(map({i, j}, sum(l, x(i, l) * w(l, j))), "y");
  return b.graph();
}

ir::Graph softmax(int64_t rows, int64_t columns) {
  ir::Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  const Scalar e = exp(x(i, j) - max(j, x(i, j)));
  b.output(map({i, j}, ratio(e, sum(j, e))), "y");
  return b.graph();
}

run::Options lanes_of(int lanes) {
  run::Options o;
  o.target = target::c_target(lanes, 1);
  return o;
}

kernel::Rounding rounding(const ir::Graph& g, const run::Options& o) {
  return run::roundings(run::derive(g, o), o).at("y");
}

double steps(const kernel::Rounding& r) { return r.growth / std::log1p(0x1p-24); }

std::string refused(const ir::Graph& g, const run::Options& o) {
  try {
    run::derive(g, o);
  } catch (const Error& e) { return e.what(); }
  return "";
}

// Four chains of a vector each: 4096 / (4 lanes) additions, then 2 levels of chains and log2(lanes) of lanes.
TEST(run_budget, the_bound_is_the_depth_of_the_tree) {
  for (int lanes : {4, 8, 16}) {
    const kernel::Rounding r = rounding(row_sums(64, 4096), lanes_of(lanes));
    ASSERT_TRUE(r.known()) << r.why;
    EXPECT_NEAR(steps(r), 4096.0 / (4 * lanes) + 2 + std::log2(lanes), 1e-6) << lanes;
    EXPECT_FALSE(r.solid); // terms of either sign may cancel
  }
}

TEST(run_budget, a_contraction_adds_in_order_and_its_blocks_after) {
  const kernel::Rounding r = rounding(products(96, 96, 1000), lanes_of(8));
  ASSERT_TRUE(r.known()) << r.why;
  // Three blocks of 384 products, each added up from 0 and then to the result.
  EXPECT_NEAR(steps(r), 1 + 384 + 3, 1e-6);
}

TEST(run_budget, a_sum_in_parts_has_a_smaller_bound) {
  const ir::Graph g = row_sums(2, 1 << 20);
  run::Options o = lanes_of(8);
  const run::Derivation d = run::derive(g, o);
  ir::NodeId sum = 0;
  for (ir::NodeId id = 0; id < d.plan.graph->nodes.size(); ++id)
    if (d.plan.graph->nodes[id].comp()) sum = id;
  const double whole = rounding(g, o).bound();
  o.schedule.groups[schedule::key(*d.plan.graph, sum)].split = 64;
  const double parts = rounding(g, o).bound();
  EXPECT_GT(whole, 20 * parts);
}

// The formula holds: no result is further off than the bound times the sum of the sizes of its terms.
TEST(run_budget, what_happens_is_within_the_bound) {
  const int64_t rows = 16, columns = 5000;
  const ir::Graph g = row_sums(rows, columns);
  run::Options o;
  run::Program p(g, test::shared_compiler(), std::make_shared<device::Cpu>(1), o);
  eval::Inputs in;
  test::fill(p, g, in);
  p.run();
  const double bound = rounding(g, o).bound();
  const eval::Array got = test::output(p, g, "y");
  double worst = 0;
  for (int64_t i = 0; i < rows; ++i) {
    double exact = 0, weight = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const double v = in.at("x").r[size_t(i * columns + j)];
      exact += v, weight += std::fabs(v);
    }
    const double off = std::fabs(got.r[size_t(i)] - exact) / weight;
    EXPECT_LE(off, bound);
    worst = std::max(worst, off);
  }
  EXPECT_GT(worst, 0);
  EXPECT_LT(bound, 2e-5);
}

TEST(run_budget, a_program_over_budget_does_not_compile) {
  const ir::Graph g = products(64, 64, 4096);
  run::Options o = lanes_of(8);
  o.budget = run::ErrorBudget{};
  o.budget->all = 1e-4;
  EXPECT_EQ(refused(g, o), "");
  o.budget->all = 1e-5;
  const std::string why = refused(g, o);
  // Eleven blocks of 384 products: 1 + 384 + 11 roundings of 2^-24.
  EXPECT_NE(why.find("output 'y' may be off by 2.4e-05"), std::string::npos) << why;
  EXPECT_NE(why.find("the budget is 1e-05"), std::string::npos) << why;
  EXPECT_NE(why.find("(1 + 2^-24)^396"), std::string::npos) << why;
  EXPECT_NE(why.find("budget.cpp:"), std::string::npos) << why; // the line that made the output
  EXPECT_THROW(run::Program(g, test::shared_compiler(), std::make_shared<device::Cpu>(1), o), Error);
  o.budget->of["y"] = 1e-3; // an output may have a budget of its own
  EXPECT_EQ(refused(g, o), "");
  o.budget->of["z"] = 1e-3;
  EXPECT_NE(refused(g, o).find("no such output"), std::string::npos);
}

TEST(run_budget, what_needs_values_is_predicted_from_samples) {
  const ir::Graph g = softmax(8, 100);
  run::Options o = lanes_of(8);
  o.budget = run::ErrorBudget{};
  std::string why = refused(g, o);
  EXPECT_NE(why.find("not known before it runs"), std::string::npos) << why;
  EXPECT_NE(why.find("`exp2` of a rounded value"), std::string::npos) << why;
  EXPECT_NE(why.find("samples"), std::string::npos) << why;
  o.budget->samples = {{"x", test::random_reals({8, 100}, 3)}};
  EXPECT_EQ(refused(g, o), "");
  o.budget->all = 1e-12; // half a unit of f32 is allowed on top: the result could not be closer
  why = refused(g, o);
  EXPECT_NE(why.find("predicted for it is"), std::string::npos) << why;
}

TEST(run_budget, narrow_storage_counts_once_for_each_time_it_is_stored) {
  ir::Builder b;
  Tensor x = b.input("x", {32, 64}), w = b.input("w", {64, 64});
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y", Format::bf16);
  const kernel::Rounding r = rounding(b.graph(), lanes_of(8));
  ASSERT_TRUE(r.known()) << r.why;
  EXPECT_GT(r.bound(), 0x1p-8);
  EXPECT_LT(r.bound(), 0x1p-8 * 1.01);
}

// A mean of squares cannot cancel: its root and its inverse stay bounded. A mean can: a division by it is not.
TEST(run_budget, only_what_cannot_cancel_may_be_divided_by) {
  auto [i, j] = axes<"i j">();
  for (bool squares : {true, false}) {
    ir::Builder b;
    Tensor x = b.input("x", {16, 256});
    const Scalar s = sum(j, squares ? x(i, j) * x(i, j) : x(i, j));
    b.output(map({i, j}, x(i, j) * (squares ? 1.0 / sqrt(s + 1e-5) : 1.0 / s)), "y");
    const kernel::Rounding r = rounding(b.graph(), lanes_of(8));
    EXPECT_EQ(r.known(), squares) << r.why;
    if (squares) { EXPECT_LT(r.bound(), 1e-5); }
    if (squares) { EXPECT_TRUE(r.solid); }
  }
}

// q, k of 30 over 128 features: scores of 115200 before they are scaled, which f16 holds as inf.
TEST(run_budget, case_25_scores_that_overflow_f16_are_refused) {
  ir::Builder b;
  Tensor q = b.input("q", {4, 128}), k = b.input("k", {2, 128}), v = b.input("v", {2, 1});
  auto [i, j, d, c] = axes<"i j d c">();
  const Tensor scores = map({i, j}, sum(d, q(i, d) * k(j, d)), "scores");
  const Scalar s = scores(i, j) / std::sqrt(128.0), e = exp(s - max(j, s));
  b.output(map({i, c}, ratio(sum(j, e * v(j, c)), sum(j, e))), "y");
  run::Options o = lanes_of(8);
  o.optimize = false;
  o.schedule = schedule::as_written();
  o.budget = run::ErrorBudget{};
  o.budget->samples = {{"q", eval::reals({4, 128}, std::vector<double>(512, 30))},
                       {"k", eval::reals({2, 128}, std::vector<double>(256, 30))},
                       {"v", eval::reals({2, 1}, {1, 3})}};
  EXPECT_EQ(refused(b.graph(), o), "");
  run::Options plain = o;
  plain.budget.reset();
  const run::Derivation derived = run::derive(b.graph(), plain);
  for (auto& x : derived.plan.buffers)
    if (derived.plan.graph->label(x.of) == "scores")
      o.schedule.groups[schedule::key(*derived.plan.graph, x.of.node)].store = Format::f16;
  ASSERT_FALSE(o.schedule.groups.empty());
  const std::string why = refused(b.graph(), o);
  EXPECT_NE(why.find("output 'y': the error predicted for it is"), std::string::npos) << why;
}

// Squares of 1e30 are beyond f32: the true result is +-1, what f32 computes is 0.
TEST(run_budget, case_35_a_variance_that_overflows_is_refused) {
  ir::Builder b;
  Tensor x = b.input("x", {1, 4});
  auto [i, j] = axes<"i j">();
  const Scalar mean = sum(j, x(i, j)) / 4.0, variance = sum(j, square(x(i, j) - mean)) / 4.0;
  b.output(map({i, j}, (x(i, j) - mean) / sqrt(variance)), "y");
  run::Options o = lanes_of(8);
  o.budget = run::ErrorBudget{};
  o.budget->samples = {{"x", eval::reals({1, 4}, {1e30, -1e30, 1e30, -1e30})}};
  EXPECT_NE(refused(b.graph(), o).find("predicted for it is"), std::string::npos);
  o.budget->samples = {{"x", eval::reals({1, 4}, {1, -1, 1, -1})}};
  EXPECT_EQ(refused(b.graph(), o), "");
}
} // namespace
