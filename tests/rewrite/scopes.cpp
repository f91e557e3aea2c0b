// Graphs with symbols and graphs inside recurrences go through the same rules.
#include "tang/ir/recurrence.hpp"
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

TEST(scopes, symbolic_attention_is_derived_before_it_is_bound) {
  Builder b;
  const Extent n = b.symbol("n", {1, 100000, 1}), m = b.symbol("m", {1, 100000, 1});
  auto q = b.input("q", {n, 8}), k = b.input("k", {m, 8}), v = b.input("v", {m, 8});
  auto [i, j, d, c] = axes<"i j d c">();
  auto s = map({i, j}, masked(j <= i, sum(d, q(i, d) * k(j, d)) * 0.3), "S");
  const Scalar top = max(j, s(i, j)), e = exp(s(i, j) - top);
  auto p = map({i, j}, e / sum(j, e), "P");
  b.output(map({i, c}, sum(j, p(i, j) * v(j, c))), "out");
  const Graph g = b.graph();
  auto o = rewrite::optimize(g);
  EXPECT_EQ(kernels(o.graph), 1) << rewrite::explain(o.trace);
  for (auto [rows, keys] : {std::pair<int64_t, int64_t>{5, 5}, {3, 9}, {9, 3}, {1, 1}}) {
    const Feed f{{"q", u(1, {rows, 8})}, {"k", u(2, {keys, 8})}, {"v", u(3, {keys, 8})}};
    const Bindings at{{"n", rows}, {"m", keys}};
    expect_refines(ir::bind(g, at).graph, ir::bind(o.graph, at).graph, f, "bound");
  }
}
TEST(scopes, a_symbol_that_may_be_zero_keeps_factors_inside) {
  Builder b;
  const Extent n = b.symbol("n", {0, 100, 1});
  auto x = b.input("x", {n}), f = b.input("f", {3});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, x(j) * f(i))), "y");
  const Graph g = b.graph();
  auto o = rewrite::optimize(g);
  EXPECT_FALSE(fired(o, "hoist"));  // an empty sum is 0, and inf * 0 is not
  const Feed empty{{"x", eval::reals({0}, {})}, {"f", eval::reals({3}, {inf, nan_, 1})}};
  expect_refines(ir::bind(g, {{"n", 0}}).graph, ir::bind(o.graph, {{"n", 0}}).graph, empty, "empty");
}
TEST(scopes, the_step_of_a_recurrence_is_rewritten_too) {
  Builder b;
  constexpr int64_t T = 5, D = 4;
  auto x = b.input("x", {T, D}), w = b.input("w", {D, D}), h0 = b.input("h0", {D});
  auto t = axis("t", T), i = axis("i", D), k = axis("k", D);
  auto r = recur(t, {carried("h", h0)}, [&](const std::vector<Tensor>& old) -> Step {
    const Tensor h = old[0];
    // A softmax over the state, written in two passes with stored weights.
    const Scalar top = max(k, w(i, k) * h(k));
    auto e = map({i, k}, exp(w(i, k) * h(k) - top), "e");
    auto next = map({i}, x(t, i) + sum(k, e(i, k) * h(k)) / sum(k, e(i, k)));
    return {{next}, {next}};
  });
  b.output(r.states[0], "last");
  b.output(r.emits[0], "all");
  const Graph g = b.graph();
  auto o = rewrite::optimize(g);
  EXPECT_TRUE(fired(o, "stabilize_softmax")) << rewrite::explain(o.trace);
  const Feed f{{"x", u(1, {T, D})}, {"w", u(2, {D, D})}, {"h0", u(3, {D})}};
  expect_refines(g, o.graph, f, "recurrence");
  EXPECT_TRUE(rewrite::optimize(o.graph).trace.steps.empty());
}
