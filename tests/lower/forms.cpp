// Each form of lowering on graphs whose sizes divide nothing, in the simulator.
#include "lower/pipeline.hpp"
#include "tang/expr/branches.hpp"
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
// Evaluations of an operation in a block: those of a statement times its points.
static int64_t evaluations(const kernel::Kernel& k, const kernel::Block& block, expr::Op op = expr::Op::exp2) {
  int64_t out = 0;
  for (auto& s : block) {
    int64_t points = 1;
    const kernel::Body* body = nullptr;
    if (auto* l = std::get_if<kernel::Loop>(&s.node)) {
      out += evaluations(k, l->body, op) * ((l->end.c - l->begin.c + l->step - 1) / l->step);
    } else if (auto* a = std::get_if<kernel::Apply>(&s.node)) {
      body = &a->body;
      for (auto& x : a->axes) points *= x.extent;
    } else if (auto* f = std::get_if<kernel::Fold>(&s.node)) {
      body = &f->body;
      for (auto& x : f->kept) points *= x.extent;
      for (auto& x : f->folded) points *= x.extent;
    }
    if (!body) continue;
    for (auto id : expr::schedule(*k.pool, body->values)) out += (*k.pool)[id].op == op ? points : 0;
  }
  return out;
}
TEST(lower, softmax_evaluates_each_exponential_once) {
  for (int64_t rows : {3, 5, 6, 16, 64}) {  // few rows one by one, more of them staggered
    Builder b;
    Tensor x = b.input("x", {rows, 1100});
    auto [i, j] = axes<"i j">();
    Scalar e = exp(x(i, j) - max(j, x(i, j)));
    b.output(map({i, j}, e / sum(j, e)), "y");
    const Graph g = b.graph();
    expect_derived(g);
    const Derived d = derive(g);
    ASSERT_EQ(d.program.kernels.size(), 1u);
    const kernel::Kernel& k = d.program.kernels[0].kernel;
    EXPECT_EQ(evaluations(k, k.body) * kernel::workgroups(k), rows * 1100) << kernel::print(k);
  }
}
TEST(lower, terms_that_outer_axes_repeat_are_evaluated_once) {
  for (int64_t outs : {64, 45, 9}) { // blocks that fill their last one, and blocks that do not
    Builder b;
    Tensor s = b.input("s", {3, 2}), x = b.input("x", {3, 2, 19}), y = b.input("y", {4, outs, 19}),
           key = b.input("key", {3, 2}, Format::i32); // looked-up rows are no side of a contraction
    auto [t, r, o, f] = axes<"t r o f">();
    b.output(map({t, o}, sum({r, f}, exp(s(t, r)) * x(t, r, f) * y(key(t, r), o, f))), "z");
    const Graph g = b.graph();
    expect_derived(g, {{"key", eval::indices({3, 2}, {0, 3, 3, 1, 2, 0})}});
    int64_t n = 0;
    for (auto& k : derive(g).program.kernels)
      n += evaluations(k.kernel, k.kernel.body) * kernel::workgroups(k.kernel);
    EXPECT_LE(n, 3 * 2 * 19) << outs; // not once an output
  }
}
TEST(lower, quotients_of_rows_do_not_over_or_underflow_before_their_value_does) {
  // Row sums from subnormal to near the largest f32; the quotient of each is 1 / 40.
  Builder b;
  Tensor x = b.input("x", {5, 40});
  auto [i, j] = axes<"i j">();
  b.output(map({i, j}, ratio(x(i, j), sum(j, x(i, j)))), "y");
  std::vector<double> v;
  for (double e : {0x1p-132, 0x1p-100, 1.0, 0x1p100, 0x1p121}) v.insert(v.end(), 40, e);
  expect_derived(b.graph(), {{"x", eval::reals({5, 40}, v)}});
  std::fill(v.begin(), v.end(), 0.0); // 0 where nothing was summed
  expect_derived(b.graph(), {{"x", eval::reals({5, 40}, v)}});
}
TEST(lower, rows_of_infinities_and_nan) {
  Builder b;
  Tensor x = b.input("x", {4, 40});
  auto [i, j] = axes<"i j">();
  Scalar m = max(j, x(i, j)), e = or_else(exp(masked(Scalar(-std::numeric_limits<double>::infinity()) < m, x(i, j) - m)), Scalar(0.0));
  b.output(map({i, j}, ratio(e, sum(j, e))), "y");
  std::vector<double> v(160, 0.25);
  std::fill(v.begin() + 40, v.begin() + 80, -std::numeric_limits<double>::infinity());
  v[3] = -std::numeric_limits<double>::infinity();
  const Graph g = b.graph();
  expect_derived(g, {{"x", eval::reals({4, 40}, v)}});
  auto got = simulate(derive(g), {{"x", eval::reals({4, 40}, v)}})["y"];
  EXPECT_EQ(got.r[45], 0);  // nothing to weigh
  EXPECT_EQ(got.r[3], 0);
  EXPECT_NEAR(got.r[4], 1.0 / 39, 1e-7);
  v[90] = std::nan("");
  got = simulate(derive(g), {{"x", eval::reals({4, 40}, v)}})["y"];
  EXPECT_TRUE(std::isnan(got.r[81]));
  EXPECT_NEAR(got.r[121], 1.0 / 40, 1e-7);
}
// A term has one entry; the others are the identity and sink through no list. Each of the k places takes one select of
// who wins and two of what stays, all but the last two more of what sinks: 5 k - 2.
TEST(lower, a_term_meets_a_list_of_the_largest_in_k_steps) {
  constexpr int k = 3;
  expr::Pool p;
  const MonoidSpec spec = topk(k);
  std::vector<expr::E> a, b;
  std::map<expr::Id, expr::Id> lift;
  for (int c = 0; c < 2 * k; ++c) {
    const expr::Type t = c < k ? expr::Type::real : expr::Type::index;
    a.push_back({&p, p.leaf(expr::Op::var, t, 2 * c)});
    b.push_back({&p, p.leaf(expr::Op::var, t, 2 * c + 1)});
    if (c != 0 && c != k) lift[b.back().id] = p.literal(spec.identity[size_t(c)]);
  }
  std::vector<expr::Id> general, settled;
  for (auto& e : spec.combine(p, a, b)) {
    general.push_back(expr::substitute(p, e.id, lift));
    settled.push_back(expr::settle_branches(p, general.back()));
  }
  int selects = 0;
  for (expr::Id id : expr::schedule(p, settled)) selects += p[id].op == expr::Op::select;
  EXPECT_EQ(selects, 5 * k - 2);
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values{-inf, -1, -0.0, 0, 2, inf, std::nan("")};
  std::mt19937 rng(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<expr::Value> leaf(size_t(4 * k));
    for (int c = 0; c < 4 * k; ++c)
      leaf[size_t(c)] = c / 2 < k ? expr::real(values[rng() % values.size()]) : expr::whole(rng() % 5 ? int64_t(rng() % 9) : INT64_MAX);
    auto value = [&](expr::Id id) { return expr::evaluate(p, id, [&](const expr::Term& t) { return leaf[size_t(t.whole)]; }); };
    for (size_t c = 0; c < general.size(); ++c) EXPECT_TRUE(expr::identical(value(general[c]), value(settled[c]))) << trial << " " << c;
  }
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
