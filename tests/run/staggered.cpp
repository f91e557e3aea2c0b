// Long rows that a workgroup has several of: statements of three rows side by side, printed as one loop.
#include <cmath>
#include <limits>

#include "run/harness.hpp"
#include "tang/emit/c.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
constexpr int64_t rows = 64, columns = 1024;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Rows of small numbers, and one each of: far below their largest, all alike and negligible, one infinity, all minus
// infinity, and perhaps a NaN: in either vector of a round, the first and the last column, and beside infinities.
eval::Array unusual(bool nan) {
  eval::Array a = random_reals({rows, columns}, 3);
  for (int64_t j = 0; j < columns; ++j) {
    a.r[size_t(5 * columns + j)] = j % 3 ? -70.0 - double(j % 40) : 3;
    a.r[size_t(6 * columns + j)] = -1e30;
    a.r[size_t(40 * columns + j)] = -infinity;
  }
  a.r[size_t(8 * columns + 1000)] = -infinity;
  for (int64_t at : nan ? std::vector<int64_t>{33 * columns + 17, 35 * columns + 8, 36 * columns, 43 * columns - 1,
                                               40 * columns + 1000}
                        : std::vector<int64_t>{})
    a.r[size_t(at)] = std::nan("");
  return a;
}

Scalar weights(const Tensor& x, const Axis& i, const Axis& j) {
  const Scalar top = max(j, x(i, j));
  return or_else(exp(masked(Scalar(-infinity) < top, x(i, j) - top)), Scalar(0.0));
}

Graph softmax() {
  Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  const Scalar e = weights(x, i, j);
  b.output(map({i, j}, ratio(e, sum(j, e))), "y");
  return b.graph();
}

Graph log_softmax() {
  Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  b.output(map({i, j}, x(i, j) - (max(j, x(i, j)) + log(sum(j, weights(x, i, j))))), "y");
  return b.graph();
}

Graph norm(int64_t rows = ::rows) {
  Builder b;
  Tensor x = b.input("x", {rows, columns}), gain = b.input("gain", {columns});
  auto [i, j] = axes<"i j">();
  const Scalar gap = x(i, j) - sum(j, x(i, j)) / double(columns);
  b.output(map({i, j}, gap / sqrt(sum(j, gap * gap) / double(columns) + 1e-5) * gain(j)), "y");
  return b.graph();
}

// The same, whose empty rows are those without a number: a row with a NaN is NaN.
Graph softmax_of_numbers() {
  Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  const Scalar top = max(j, x(i, j));
  const Scalar e = or_else(exp(masked(!(top == Scalar(-infinity)), x(i, j) - top)), Scalar(0.0));
  b.output(map({i, j}, ratio(e, sum(j, e))), "y");
  return b.graph();
}

// Each value above the least of its row.
Graph heights() {
  Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  b.output(map({i, j}, x(i, j) - min(j, x(i, j))), "y");
  return b.graph();
}

// A value a row, after two passes.
Graph log_sum() {
  Builder b;
  Tensor x = b.input("x", {rows, columns});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, max(j, x(i, j)) + log(sum(j, weights(x, i, j)))), "y");
  return b.graph();
}
} // namespace

TEST(staggered, rows_with_unusual_values) {
  // A softmax with a NaN in its row is NaN in kernels (`lower.rows_of_infinities_and_nan`), its definition says 0.
  expect_program(softmax(), {{"x", unusual(false)}});
  for (const Graph& g : {log_softmax(), log_sum()}) expect_program(g, {{"x", unusual(true)}});
  expect_program(softmax());
  expect_program(norm());
}

// The loop of usual rows and the loop of the others, in every width; and a plain max or min that drops a NaN, with the
// test that finds it.
TEST(staggered, rows_that_are_empty_or_hold_a_nan) {
  for (int lanes : {1, 4, 8, 16})
    for (const Graph& g : {softmax_of_numbers(), log_softmax(), log_sum(), heights()}) {
      run::Options o;
      o.target.lanes = lanes;
      o.target.workers = 1;
      SCOPED_TRACE(lanes);
      expect_program(g, {{"x", unusual(true)}}, o);
    }
}

// What is known of a row before its loop is asked there: the loop of usual rows chooses nothing.
TEST(staggered, usual_rows_choose_nothing) {
  run::Options o;
  o.target.lanes = 8;
  o.target.workers = 1;
  emit::COptions c;
  c.lanes = 8;
  for (const Graph& g : {softmax(), softmax_of_numbers(), log_softmax(), log_sum()}) {
    const std::string text = emit::c(run::derive(g, o).kernels.kernels[0].kernel, c);
    size_t loops = 0;
    for (size_t at = text.find(", 1)) {"); at != std::string::npos; at = text.find(", 1)) {", at + 1)) {
      ++loops;
      EXPECT_EQ(text.substr(at, text.find("else {", at) - at).find("tang_selW"), std::string::npos) << text;
    }
    EXPECT_GT(loops, 0u) << text;
  }
}

TEST(staggered, every_width_of_vectors) {
  for (int lanes : {1, 4, 8, 16})
    for (const Graph& g : {softmax(), log_softmax(), norm()}) {
      run::Options o;
      o.target.lanes = lanes;
      expect_program(g, {}, o);
    }
}

// Rows that pair and rows that do not, and few of them.
TEST(staggered, any_number_of_rows) {
  for (int64_t n : {4, 6, 7, 62, 63}) {
    run::Options o;
    o.target.workers = 1;
    expect_program(norm(n), {}, o);
  }
}

// The passes of a row share a loop with those of the rows beside it: one reads far memory, one computes, one stores.
// Where none computes much there are two rows of each.
TEST(staggered, passes_share_a_loop) {
  for (auto& [g, passes] : {std::pair{softmax(), 4}, {log_softmax(), 3}, {norm(), 6}}) {
    run::Options o;
    o.target.lanes = 8;
    o.target.workers = 1;
    const run::Derivation d = run::derive(g, o);
    ASSERT_EQ(d.kernels.kernels.size(), 1u);
    emit::COptions c;
    c.lanes = 8;
    const std::string text = emit::c(d.kernels.kernels[0].kernel, c), last = " p" + std::to_string(passes - 1) + "w1t";
    EXPECT_NE(text.find(last), std::string::npos) << text;
  }
}
