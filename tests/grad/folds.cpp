// Folds under every kind of monoid, views of every kind, and the places where gradients go wrong.
#include "grad/check.hpp"
#include "tang.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// A graph of one output over x [6, 5] and w [5, 4].
void expect_gradient(const std::string& what, const std::function<Tensor(Builder&, Tensor x, Tensor w)>& make, Inputs in = {}, int differences = 6) {
  Builder b;
  Tensor x = b.input("x", {6, 5}), w = b.input("w", {5, 4});
  b.output(make(b, x, w), "y");
  GradientCheck check(b.graph(), std::move(in), what);
  ASSERT_NO_FATAL_FAILURE(check.run());
  check.expect_central(differences);
  check.expect_forward();
}
MonoidSpec user(const char* name, std::vector<expr::Value> identity, decltype(MonoidSpec::combine) combine, bool commutative = true) {
  return {name, std::move(identity), std::move(combine), commutative, true};
}
using expr::E;
using Es = std::vector<E>;
}  // namespace

TEST(grad_folds, any_monoid) {
  auto [i, j, k] = axes<"i j k">();
  expect_gradient("product", [&](Builder&, Tensor x, Tensor) {
    return map({i}, fold(user("product", {expr::real(1)}, [](expr::Pool&, const Es& a, const Es& b) { return Es{a[0] * b[0]}; }), j, {x(i, j)})[0]);
  });
  expect_gradient("log-add-exp", [&](Builder&, Tensor x, Tensor) {
    return map({i}, fold(user("lse", {expr::real(-1e30)}, [](expr::Pool&, const Es& a, const Es& b) {
                 E top = max(a[0], b[0]);
                 return Es{top + log(expr::exp(a[0] - top) + expr::exp(b[0] - top))};
               }), j, {x(i, j)})[0]);
  });
  expect_gradient("welford", [&](Builder&, Tensor x, Tensor) {
    auto s = fold(ir::welford(), j, {1.0, x(i, j), 0.0});
    return map({i}, s[2] / s[0] + s[1]);
  });
  // Not commutative: x -> a x + b, composed in order.
  expect_gradient("affine maps in order", [&](Builder&, Tensor x, Tensor) {
    auto s = fold(user("affine", {expr::real(1), expr::real(0)}, [](expr::Pool&, const Es& a, const Es& b) { return Es{b[0] * a[0], b[0] * a[1] + b[1]}; }, false), j, {x(i, j), x(i, j) * x(i, j)});
    return map({i}, s[0] * s[1]);
  });
  expect_gradient("over two axes, in order", [&](Builder&, Tensor x, Tensor w) {
    auto s = fold(user("affine", {expr::real(1), expr::real(0)}, [](expr::Pool&, const Es& a, const Es& b) { return Es{b[0] * a[0], b[0] * a[1] + b[1]}; }, false), {j, k}, {w(j, k), x(i, j) * w(j, k)});
    return map({i}, s[1]);
  });
  expect_gradient("top 2", [&](Builder&, Tensor x, Tensor) {
    auto t = ir::top(2, j, x(i, j));
    return map({i}, t.first[0] * t.first[1]);
  });
  expect_gradient("online softmax as one fold", [&](Builder&, Tensor x, Tensor w) {
    auto s = fold(online_softmax(2), j, {masked(j <= i, x(i, j)), 1.0, w(j, k)});
    return map({i, k}, ratio(s[2], s[1]) + s[0]);
  });
  expect_gradient("largest times smallest over two axes", [&](Builder&, Tensor x, Tensor w) {
    return map({i}, max({j, k}, x(i, j) * w(j, k)) * min({j, k}, x(i, j) * w(j, k)));
  });
  expect_gradient("value at the arg-max of another", [&](Builder&, Tensor x, Tensor w) {
    auto best = fold(argmax(), j, {x(i, j), iota(j)});
    return map({i, k}, masked(Index(best[1]) < Index(5), w(best[1], k)) * best[0]);
  });
}

TEST(grad_folds, views) {
  const Axis i = axis("i", Extent(6)), j = axis("j", Extent(5)), k = axis("k", Extent(4));
  expect_gradient("diagonal", [&](Builder&, Tensor x, Tensor) {
    const Axis d = axis("d", Extent(5));
    return map({d}, x(d, d) * x(d, 4 - Index(d)));
  });
  expect_gradient("stride and offset", [&](Builder&, Tensor x, Tensor) {
    const Axis a = axis("a", Extent(3)), r = axis("r", Extent(2));
    return map({a, j}, sum(r, x(2 * Index(a) + Index(r), j) * x.where_in_range({2 * Index(a) + Index(r) - 1, j})));
  });
  expect_gradient("padding inside a product", [&](Builder&, Tensor x, Tensor) {
    return map({i, j}, x.at_or(2.0, {Index(i) - 1, j}) * x.at_or(0.5, {i, Index(j) + 2}));
  });
  expect_gradient("transposed, reversed, read three times", [&](Builder&, Tensor x, Tensor w) {
    return map({i, k}, sum(j, x(i, j) * w(j, k)) * sum(j, x(5 - Index(i), 4 - Index(j)) * w(4 - Index(j), k)) * x(i, 0));
  });
  expect_gradient("a gather, twice the same row", [&](Builder& b, Tensor x, Tensor) {
    Tensor at = b.input("at", {7}, Format::i32);
    const Axis t = axis("t");
    return map({t, j}, x(at(t), j) * x(at(t), j));
  }, {{"at", eval::indices({7}, {0, 3, 3, 5, 0, 3, 1})}});
  expect_gradient("pages of two rows", [&](Builder& b, Tensor x, Tensor) {
    Tensor page = b.input("page", {2}, Format::i32);
    const Axis p = axis("p"), o = axis("o", Extent(2));
    return map({p, o, j}, tanh(x(2 * Index(page(p)) + Index(o), j)));
  }, {{"page", eval::indices({2}, {2, 0})}});
  expect_gradient("an output view, read at a distance", [&](Builder&, Tensor x, Tensor) {
    const Axis a = axis("a", Extent(6)), s = axis("s", Extent(5)), t = axis("t", Extent(27));
    Tensor flat = map_at({a, s}, {5 * Index(a) + Index(s)}, {30}, x(a, s) * x(a, s));
    return map({t}, flat(t) * flat(Index(t) + 3));
  });
  expect_gradient("a stored map with a data predicate", [&](Builder&, Tensor x, Tensor w) {
    Tensor kept = map({i, j}, masked(x(i, j) < 0.2, x(i, j) * x(i, j)), "kept");
    return map({i, k}, sum(j, w(j, k) + kept(i, j)));
  });
  expect_gradient("either branch, where the first may be absent", [&](Builder&, Tensor x, Tensor w) {
    return map({i, j}, or_else(masked(x(i, j) < 0.0, x(i, j)), w(j, 0) * w(j, 1)));
  });
}

TEST(grad_folds, ties_and_corners_of_elementary_functions) {
  // At 0 exactly: the spellings ask x < 0 beside |x|. sigmoid' = 1/4, tanh' = 1, softplus' = 1/2, silu' = 1/2,
  // gelu' = 1/2, elu' = 1, erf' = 2/sqrt(pi), relu' = 0, |x|' = 1.
  const std::vector<std::pair<double, std::function<Scalar(const Scalar&)>>> rows{
      {0.25, [](const Scalar& s) { return sigmoid(s); }},   {1, [](const Scalar& s) { return tanh(s); }},
      {0.5, [](const Scalar& s) { return softplus(s); }},   {0.5, [](const Scalar& s) { return silu(s); }},
      {0.5, [](const Scalar& s) { return gelu(s); }},       {0.5, [](const Scalar& s) { return gelu_tanh(s); }},
      {1, [](const Scalar& s) { return elu(s); }},          {2 / std::sqrt(M_PI), [](const Scalar& s) { return ir::erf(s); }},
      {0, [](const Scalar& s) { return relu(s); }},         {1, [](const Scalar& s) { return ir::abs(s); }}};
  for (size_t k = 0; k < rows.size(); ++k) {
    Builder b;
    Tensor x = b.input("x", {1});
    const Axis i = axis("i");
    b.output(grad(map({i}, rows[k].second(x(i))), {x})[0], "dx");
    EXPECT_NEAR(eval::run(b.graph(), {{"x", eval::reals({1}, {0})}}).at("dx").r[0], rows[k].first, 1e-12) << k;
  }
}

TEST(grad_folds, what_is_dead_stays_out) {
  // NaN and inf where the mask removes them, and rows that see nothing.
  Builder b;
  Tensor q = b.input("q", {4, 3}), k = b.input("k", {5, 3}), v = b.input("v", {5, 2});
  auto [i, j, d, c] = axes<"i j d c">();
  const Guard seen = Index(j) < Index(i);  // row 0 sees no key, keys 3 and 4 are seen by nobody
  const Scalar score = masked(seen, sum(d, q(i, d) * k(j, d)));
  const Scalar weight = exp(score - max(j, score));
  b.output(map({i, c}, ratio(sum(j, weight * v(j, c)), sum(j, weight))), "out");
  std::mt19937_64 rng(3);
  Inputs in{{"k", random_array({5, 3}, rng)}, {"v", random_array({5, 2}, rng)}};
  for (double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    for (size_t e = 9; e < 15; ++e) in["k"].r[e] = bad;
    for (size_t e = 6; e < 10; ++e) in["v"].r[e] = bad;
    GradientCheck check(b.graph(), in, "dead keys");
    check.run();
    check.expect_central();
    check.expect_forward();
    for (size_t e = 9; e < 15; ++e) EXPECT_EQ(check.gradients.at("k").r[e], 0);
    for (size_t e = 6; e < 10; ++e) EXPECT_EQ(check.gradients.at("v").r[e], 0);
    for (size_t e = 0; e < 3; ++e) EXPECT_EQ(check.gradients.at("q").r[e], 0);  // the empty row
  }
}

TEST(grad_folds, empty_dimensions) {
  for (auto [n, m] : {std::pair{0, 3}, {3, 0}, {0, 0}}) {
    Builder b;
    Tensor x = b.input("x", {n, m}), w = b.input("w", {m, 2});
    auto [i, j, c] = axes<"i j c">();
    const Scalar top = max(j, x(i, j));
    b.output(map({i, c}, sum(j, exp(x(i, j) - top) * w(j, c)), "y"), "y");
    GradientCheck check(b.graph(), {}, "empty");
    check.run();
    check.expect_forward();
    for (double v : check.gradients.at("w").r) EXPECT_EQ(v, 0);
  }
}

TEST(grad_folds, ties_of_a_maximum_add_up_to_one) {
  Builder b;
  Tensor x = b.input("x", {3, 4});
  auto [i, j] = axes<"i j">();
  b.output(vjp(map({i}, max(j, x(i, j))), b.input("dy", {3}), {x})[0], "dx");
  const double inf = HUGE_VAL;
  const Array d = eval::run(b.graph(), {{"x", eval::reals({3, 4}, {1, 2, 2, 2, -inf, -inf, -inf, -inf, 5, 4, 5, 5})}, {"dy", eval::reals({3}, {1, 2, 3})}}).at("dx");
  EXPECT_EQ(d.r, (std::vector<double>{0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}));
}

TEST(grad_surface, tensors_are_ordinary_and_gradients_nest) {
  // y = sum x^3: dy = 3 x^2, and the gradient of sum dy * x by x is 9 x^2.
  Builder b;
  Tensor x = b.input("x", {4});
  const Axis i = axis("i"), one = axis("one", Extent(1));
  const Tensor y = map({one}, sum(i, x(i) * x(i) * x(i)));
  const auto d = grad<1>(y, {x});
  const Tensor z = map({one}, sum(i, d[0](i) * x(i)));
  b.output(grad(z, {x})[0], "d2");
  b.output(d[0], "d1");
  b.output(grad(y, {b.input("unused", {2})})[0], "none");
  auto out = eval::run(b.graph(), {{"x", eval::reals({4}, {1, -2, 0, 3})}, {"unused", eval::reals({2}, {1, 1})}});
  EXPECT_EQ(out["d1"].r, (std::vector<double>{3, 12, 0, 27}));
  EXPECT_EQ(out["d2"].r, (std::vector<double>{9, 36, 0, 81}));
  EXPECT_EQ(out["none"].r, (std::vector<double>{0, 0}));
}

TEST(grad_surface, a_recurrence_runs_forward_once) {
  Builder b;
  const Axis t = axis("t", Extent(5)), u = axis("u", Extent(3)), k = axis("k", Extent(3));
  Tensor x = b.input("x", {5, 3}), w = b.input("w", {3, 3}), h0 = b.input("h0", {3});
  const Recurred r = recur(t, {carried("h", h0)}, [&](const std::vector<Tensor>& old) -> Step {
    const Tensor next = map({u}, tanh(x(t, u) + sum(k, w(u, k) * old[0](k))));
    return {{next}, {next}};
  });
  const Axis one = axis("one", Extent(1));
  const Tensor loss = map({one}, sum({t, u}, r.emits[0](t, u) * r.emits[0](t, u)));
  b.output(loss, "loss");
  const auto d = grad(loss, {x, w, h0});
  b.output(d[0], "dx"), b.output(d[1], "dw"), b.output(d[2], "dh0");
  const Graph g = b.graph();
  validate(g);
  int recurrences = 0;
  for (auto& n : g.nodes) recurrences += n.recur() != nullptr;
  EXPECT_EQ(recurrences, 2);  // forward, which now emits its old states, and backward
}

TEST(grad_surface, what_is_wrong_is_said) {
  Builder b;
  Tensor x = b.input("x", {4}), at = b.input("at", {4}, Format::i32);
  const Axis i = axis("i"), one = axis("one", Extent(1));
  auto headline = [&](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) { return e.headline(); }
    return std::string("nothing");
  };
  EXPECT_EQ(headline([&] { grad(map({i}, x(i), "y"), {x}); }), "the gradient of y, which is [4]");
  EXPECT_EQ(headline([&] { grad(map({one}, sum(i, x(i))), {at}); }), "at holds index values");
  EXPECT_EQ(headline([&] { vjp(map({i}, x(i)), map({one}, sum(i, x(i))), {x}); }), "an adjoint of another shape");
}

// A condition that is the same for all terms may stand beside bounds that keep what it reads inside its array: where
// those stay with the terms, so does it.
TEST(grad_folds, a_condition_stays_with_the_bounds_that_it_needs) {
  const ir::Graph g = text::parse(R"(exact
"n3 exists"[i0: 16, i1: 6] = {i0 <= 1} or {i1 <= 1}
input in0[16, 6] : f32
n0[i0: 6, i1: 16] = in0[i1, -i0 + 5] * in0[i1, -i0 + 5]
n3[i0: 16, i1: 6] = or_else(only({i1 <= 1}, 1), only({i0 <= 1}, n0[4, i0]))
n4[i0: 16, i1: 6] = only("n3 exists"[-i0, -2], n3[-i0, -2]) where {never}
output n4 : f32
)", "never.tang");
  Port in;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].input()) in = {id, 0};
  auto d = diff::gradient(g, {{g.outputs[0].port, {}}}, {in});
  ASSERT_TRUE(d) << d.why();
  d->graph.outputs.push_back({d->of[0], "dx", ir::Format::f32});
  const Array dx = eval::run(d->graph, {{"in0", eval::reals({16, 6}, std::vector<double>(96, 1))}}).at("dx");
  EXPECT_EQ(dx.r, std::vector<double>(96, 0));
}
