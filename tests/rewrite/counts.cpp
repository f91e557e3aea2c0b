// Derivations counted by hand first. A kernel is a stored node: a fold that is no shared short contraction, or a map that
// is neither spliced nor the epilogue of a fold it reads point for point (rewrite/measure.hpp). `nodes` counts all.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
int nodes(const Graph& g) {
  int n = 0;
  for (auto& x : g.nodes) n += !x.input();
  return n;
}
constexpr int64_t N = 64, D = 16;
using Score = std::function<Scalar(Head&)>;
}  // namespace

TEST(counts, causal_attention_with_stored_scores_and_probabilities) {
  // Naive: q k, S, max, sum, P, P v, output: 7 nodes, of which S, P (and q k) are N x N.
  Head h(N, N, D, D);
  const Graph g = h.stored_softmax(masked(h.j <= h.i, h.dot()));
  EXPECT_EQ(nodes(g), 7);
  EXPECT_TRUE(stores(g, {N, N}));
  // Left: one fold (m, l, o) with the division as its epilogue; q k is a short contraction evaluated in its tiles.
  auto o = witness("flash", g, h.feed, {"fuse", "hoist", "stabilize_softmax"});
  EXPECT_EQ(kernels(o.graph), 1) << rewrite::explain(o.trace);
  EXPECT_EQ(nodes(o.graph), 3);
  EXPECT_FALSE(stores(o.graph, {N, N}));
  ASSERT_TRUE(fold_with(o.graph, 3));
  EXPECT_EQ(rewrite::cost_of(o.graph).stored.size(), 1u);  // the output alone is written
}
TEST(counts, decoding_one_row_is_the_same_derivation) {
  // One query against 4096 keys: scores are no larger than what they read, but their only reader folds each once.
  Head h(1, 512, D, D);
  auto o = witness("decode", h.stored_softmax(h.dot()), h.feed, {"stabilize_softmax"});
  EXPECT_EQ(kernels(o.graph), 1) << rewrite::explain(o.trace);
  EXPECT_FALSE(stores(o.graph, {1, 512}));
}
TEST(counts, every_mask_and_score_variant_leaves_one_kernel) {
  const std::vector<std::pair<const char*, Score>> variants = {
      {"causal", [](Head& h) { return masked(h.j <= h.i, h.dot()); }},
      {"causal where", [](Head& h) { return where(h.j <= h.i, h.dot(), -inf); }},
      {"full", [](Head& h) { return h.dot(); }},
      {"window", [](Head& h) { return masked(h.j <= h.i && h.j >= Index(h.i) - Index(8), h.dot()); }},
      {"prefix", [](Head& h) { return masked(h.j <= h.i || Index(h.j) < Index(8), h.dot()); }},
      {"sinks", [](Head& h) { return masked((h.j <= h.i && h.j >= Index(h.i) - Index(8)) || (h.j <= h.i && Index(h.j) < Index(4)), h.dot()); }},
      {"soft cap", [](Head& h) { return masked(h.j <= h.i, 30.0 * tanh(h.dot() / 30.0)); }},
      {"ALiBi", [](Head& h) { return masked(h.j <= h.i, h.dot() + 0.1 * to_real(iota(Index(h.j) - Index(h.i)))); }},
      {"bias", [](Head& h) {
         auto bias = h.b.input("bias", {2 * N});
         h.feed["bias"] = u(4, {2 * N});
         return masked(h.j <= h.i, h.dot() + bias(Index(h.j) - Index(h.i) + Index(N)));
       }},
      {"documents", [](Head& h) {
         auto doc = h.b.input("doc", {N}, Format::i32);
         std::vector<int64_t> d;
         for (int64_t k = 0; k < N; ++k) d.push_back(k / 20);
         h.feed["doc"] = ids(d);
         return masked(doc(h.i) == doc(h.j), masked(h.j <= h.i, h.dot()));
       }},
      {"length", [](Head& h) {
         auto len = h.b.input("len", {}, Format::i32);
         h.feed["len"] = number(37);
         return masked(h.j < Index(len()), h.dot());
       }},
  };
  for (auto& [name, score] : variants)
    for (bool as_stored : {false, true}) {
      Head h(N, N, D, D);
      const Scalar s = score(h);
      auto o = witness(name, as_stored ? h.stored_softmax(s) : h.softmax(s), h.feed, {"stabilize_softmax"});
      EXPECT_EQ(kernels(o.graph), 1) << name << " " << as_stored << "\n" << rewrite::explain(o.trace);
      EXPECT_FALSE(stores(o.graph, {N, N})) << name;
    }
}
TEST(counts, logsumexp_is_one_pass) {
  // max, sum, m + log l -> one fold (m, l) and an epilogue.
  Builder b;
  auto x = b.input("x", {6, 50});
  auto [i, j] = axes<"i j">();
  const Scalar m = max(j, x(i, j));
  b.output(map({i}, m + log(sum(j, exp(x(i, j) - m)))), "lse");
  EXPECT_EQ(nodes(b.graph()), 3);
  auto o = witness("lse", b.graph(), {{"x", u(1, {6, 50})}}, {"stabilize_softmax"});
  EXPECT_EQ(nodes(o.graph), 2);
  EXPECT_EQ(kernels(o.graph), 1);
}
TEST(counts, softmax_is_two_passes) {
  // max, sum, e stored, e / l -> (m, l) and one map; e is recomputed.
  Builder b;
  auto x = b.input("x", {6, 50});
  auto [i, j] = axes<"i j">();
  const Scalar m = max(j, x(i, j));
  auto e = map({i, j}, exp(x(i, j) - m), "e");
  b.output(map({i, j}, e(i, j) / sum(j, e(i, j))), "p");
  EXPECT_EQ(nodes(b.graph()), 4);
  auto o = witness("softmax", b.graph(), {{"x", u(1, {6, 50})}}, {"fuse", "stabilize_softmax"});
  EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);
  EXPECT_EQ(rewrite::cost_of(o.graph).stored.size(), 3u);  // m, l and the output
}
TEST(counts, layer_norm) {
  auto build = [](int form) {
    Builder b;
    auto x = b.input("x", {6, 50}), g = b.input("g", {50});
    auto [i, j] = axes<"i j">();
    if (form == 0) {  // two passes: mean, deviations stored, their squares, output
      const Scalar mean = sum(j, x(i, j)) / 50.0;
      auto dev = map({i, j}, x(i, j) - mean, "dev");
      const Scalar var = sum(j, square(dev(i, j))) / 50.0;
      b.output(map({i, j}, dev(i, j) * recip(sqrt(var + 1e-5)) * g(j)), "y");
    } else if (form == 1) {  // Welford: one fold
      auto w = fold(welford(), j, {1.0, x(i, j), 0.0});
      b.output(map({i, j}, (x(i, j) - w[1]) * recip(sqrt(w[2] / 50.0 + 1e-5)) * g(j)), "y");
    } else {  // sums of x and x^2: siblings
      const Scalar mean = sum(j, x(i, j)) / 50.0, square_mean = sum(j, square(x(i, j))) / 50.0;
      b.output(map({i, j}, (x(i, j) - mean) * recip(sqrt(square_mean - mean * mean + 1e-5)) * g(j)), "y");
    }
    return b.graph();
  };
  const Feed f{{"x", u(1, {6, 50})}, {"g", u(2, {50})}};
  // The second fold reads the first: three kernels, but no stored deviations (4 nodes before).
  auto two = witness("two passes", build(0), f, {"fuse"});
  EXPECT_EQ(nodes(build(0)), 4);
  EXPECT_EQ(kernels(two.graph), 3) << rewrite::explain(two.trace);
  EXPECT_EQ(kernels(witness("Welford", build(1), f).graph), 2);
  auto sums = witness("sums", build(2), f, {"merge_siblings"});
  EXPECT_EQ(nodes(build(2)), 3);
  EXPECT_EQ(kernels(sums.graph), 2);
}
TEST(counts, swiglu_gate_and_up_are_one_contraction) {
  // x Wg, x Wu, silu(g) u, h Wd, output copy: 5 nodes. Left: (g, u) with h as its epilogue, and h Wd.
  Builder b;
  auto x = b.input("x", {8, 200}), wg = b.input("wg", {200, 300}), wu = b.input("wu", {200, 300}), wd = b.input("wd", {300, 200});
  auto [t, k, f, m] = axes<"t k f m">();
  auto h = map({t, f}, silu(sum(k, x(t, k) * wg(k, f))) * sum(k, x(t, k) * wu(k, f)), "h");
  b.output(map({t, m}, sum(f, h(t, f) * wd(f, m))), "y");
  const Graph g = b.graph();
  EXPECT_EQ(nodes(g), 5);
  auto o = rewrite::optimize(g);
  EXPECT_TRUE(fired(o, "merge_siblings"));
  EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);
  EXPECT_EQ(nodes(o.graph), 3);
  EXPECT_EQ(rewrite::cost_of(o.graph).stored.size(), 2u);  // h and y; neither g nor u is written
  const Comp* merged = fold_with(o.graph, 2);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->args.size(), 3u);  // x is read once
  expect_refines(g, o.graph, {{"x", u(1, {8, 200})}, {"wg", u(2, {200, 300})}, {"wu", u(3, {200, 300})}, {"wd", u(4, {300, 200})}}, "SwiGLU");
}
TEST(counts, split_k_is_a_partial_and_a_join) {
  Builder b;
  auto x = b.input("x", {3, 1000}), w = b.input("w", {1000, 2});
  auto [i, k, n] = axes<"i k n">();
  b.output(map({i, n}, sum(k, x(i, k) * w(k, n))), "y");
  const Feed f{{"x", u(1, {3, 1000})}, {"w", u(2, {1000, 2})}};
  auto o = rewrite::optimize(b.graph());
  ASSERT_EQ(kernels(o.graph), 1);
  for (int64_t parts : {4, 7}) {  // 1000 = 4 * 250 = 6 * 143 + 142: with and without a tail
    auto s = rewrite::split_fold_in(o.graph, o.graph.outputs[0].port.node, 0, parts);
    ASSERT_TRUE(bool(s)) << s.why();
    EXPECT_EQ(kernels(s->graph), 2);
    EXPECT_TRUE(stores(s->graph, {parts, 3, 2}));
    expect_refines(b.graph(), s->graph, f, "split-K");
  }
}
TEST(counts, linear_attention_keeps_a_state_instead_of_scores) {
  // (phi(q) phi(k)) v: N x N scores. Left: the state phi(k) v [d, c] and its product with phi(q).
  Head h(N, N, D, D);
  auto s = map({h.i, h.j}, sum(h.d, relu(h.q(h.i, h.d)) * relu(h.k(h.j, h.d))), "S");
  h.b.output(map({h.i, h.c}, sum(h.j, s(h.i, h.j) * h.v(h.j, h.c))), "out");
  const Graph g = h.b.graph();
  EXPECT_TRUE(stores(g, {N, N}));
  auto o = witness("linear", g, h.feed, {"swap_folds_and_factor"});
  EXPECT_EQ(nodes(o.graph), 2) << rewrite::explain(o.trace);
  EXPECT_FALSE(stores(o.graph, {N, N}));
  EXPECT_TRUE(stores(o.graph, {D, D}));
  eval::Oracle before(g, h.feed), after(o.graph, h.feed);
  before.port(g.outputs[0].port);
  after.port(o.graph.outputs[0].port);
  EXPECT_EQ(after.terms(), 2 * N * D * D);          // by hand: j d c + i c d
  EXPECT_GE(before.terms(), N * N * D + N * N * D);  // i j d + i j c
}
TEST(counts, convolution_reads_through_a_guard_and_stores_no_columns) {
  // im2col [o, c, a] stored, then a contraction, then the bias: 4 nodes. Left: one fold and its epilogue.
  Builder b;
  auto im = b.input("im", {8, 40}), w = b.input("w", {12, 8, 3}), bias = b.input("bias", {12});
  auto o = axis("o", 40), a = axis("a", 3);
  auto [c, f] = axes<"c f">();
  auto columns = map({o, c, a}, im.at_or(0.0, {c, Index(o) + a - 1}), "columns");
  b.output(map({f, o}, relu(sum({c, a}, columns(o, c, a) * w(f, c, a)) + bias(f))), "y");
  const Graph g = b.graph();
  EXPECT_EQ(nodes(g), 3);
  const Feed feed{{"im", u(1, {8, 40})}, {"w", u(2, {12, 8, 3})}, {"bias", u(3, {12})}};
  auto r = witness("conv", g, feed, {"fuse", "guard_to_absence"});
  EXPECT_EQ(kernels(r.graph), 1) << rewrite::explain(r.trace);
  EXPECT_FALSE(stores(r.graph, {40, 8, 3}));
  for (auto& n : r.graph.nodes)
    if (auto* x = n.comp(); x && x->monoid) {
      EXPECT_EQ(x->domain.size(), 1u);
      EXPECT_EQ(x->domain[0].size(), 2u);  // 0 <= o + a - 1 < 40
    }
}
TEST(counts, top_k_routing) {
  // Logits, one fold for the best 2 of 16, maps for values and indices: two kernels, four epilogues.
  Builder b;
  auto x = b.input("x", {5, 200}), w = b.input("w", {200, 16});
  auto [t, k, e] = axes<"t k e">();
  const Scalar logits = sum(k, x(t, k) * w(k, e));
  auto [values, at] = top(2, e, logits);
  for (int r = 0; r < 2; ++r) {
    b.output(map({t}, sigmoid(values[size_t(r)])), "value " + std::to_string(r));
    b.output(map({t}, at[size_t(r)]), "expert " + std::to_string(r));
  }
  const Feed f{{"x", u(1, {5, 200})}, {"w", u(2, {200, 16})}};
  auto o = witness("routing", b.graph(), f);
  EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);
}
TEST(counts, bias_and_activation_are_epilogues) {
  // x W1, gelu(. + b1), h W2, . + b2 -> two contractions with epilogues; the activation is not recomputed in the second.
  Builder b;
  auto x = b.input("x", {8, 200}), w1 = b.input("w1", {200, 300}), b1 = b.input("b1", {300}), w2 = b.input("w2", {300, 200}), b2 = b.input("b2", {200});
  auto [t, k, f, m] = axes<"t k f m">();
  auto pre = map({t, f}, sum(k, x(t, k) * w1(k, f)), "pre");
  auto biased = map({t, f}, pre(t, f) + b1(f), "biased");
  auto h = map({t, f}, gelu(biased(t, f)), "h");
  auto y = map({t, m}, sum(f, h(t, f) * w2(f, m)), "y");
  b.output(map({t, m}, y(t, m) + b2(m)), "out");
  const Graph g = b.graph();
  EXPECT_EQ(nodes(g), 7);
  auto o = rewrite::optimize(g);
  EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);
  EXPECT_EQ(nodes(o.graph), 4);
  EXPECT_EQ(rewrite::cost_of(o.graph).stored.size(), 2u);
  expect_refines(g, o.graph, {{"x", u(1, {8, 200})}, {"w1", u(2, {200, 300})}, {"b1", u(3, {300})}, {"w2", u(4, {300, 200})}, {"b2", u(5, {200})}}, "MLP");
}
TEST(counts, a_norm_before_a_contraction_scales_the_result) {
  // RMS norm, then a projection: the row's factor leaves the sum, the normalised rows are not stored.
  Builder b;
  auto x = b.input("x", {8, 200}), g = b.input("g", {200}), w = b.input("w", {200, 300});
  auto [t, k, n] = axes<"t k n">();
  const Scalar r = recip(sqrt(sum(k, square(x(t, k))) / 200.0 + 1e-6));
  auto y = map({t, k}, x(t, k) * r * g(k), "normed");
  b.output(map({t, n}, sum(k, y(t, k) * w(k, n))), "q");
  const Feed f{{"x", u(1, {8, 200})}, {"g", u(2, {200})}, {"w", u(3, {200, 300})}};
  auto o = rewrite::optimize(b.graph());
  EXPECT_TRUE(fired(o, "hoist"));
  expect_refines(b.graph(), o.graph, f, "norm");
  EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);
  EXPECT_FALSE(stores(o.graph, {8, 200}));
}
TEST(counts, the_weights_that_a_gradient_recomputes_read_one_number_a_row) {
  // P again, folded over rows: exp(s - m) / l becomes exp(s - r) with r = m + log l kept for each row.
  for (bool documents : {false, true}) {
    Head h(N, N, D, D);
    auto go = h.b.input("go", {N, D});
    h.feed["go"] = u(4, {N, D});
    auto doc = h.b.input("doc", {N}, Format::i32);
    h.feed["doc"] = ids(std::vector<int64_t>(size_t(N), 0));
    for (int64_t k = 0; k < N; ++k) h.feed["doc"].i[size_t(k)] = k / 20;
    const Scalar causal = masked(h.j <= h.i, h.dot()), s = documents ? masked(doc(h.i) == doc(h.j), causal) : causal, m = max(h.j, s), e = exp(s - m), l = sum(h.j, e);
    h.b.output(map({h.i, h.c}, ratio(sum(h.j, e * h.v(h.j, h.c)), l)), "out");
    h.b.output(map({h.j, h.c}, sum(h.i, ratio(e, l) * go(h.i, h.c))), "dv");
    auto o = witness("backward", h.b.graph(), h.feed, {"normalise", "keep_row", "stabilize_softmax"});
    EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);  // forward with out and r as epilogues; dv
    EXPECT_FALSE(stores(o.graph, {N, N}));
    EXPECT_EQ(rewrite::cost_of(o.graph).stored.size(), 3u);  // out, dv, r
  }
}
