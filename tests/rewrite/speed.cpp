// The pipeline on whole models: shape of the result, and that it ends soon.
#include <chrono>

#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// A decoder of `layers` blocks on `rows` new tokens against a cache of `keys`, written as a framework would store it:
// every intermediate is a map of its own.
Graph decoder(int layers, int64_t rows, int64_t keys, int64_t model, int64_t heads, int64_t groups, int64_t dim, int64_t hidden, bool cached) {
  Builder b;
  auto x0 = b.input("x", {rows, model});
  Tensor x = x0;
  auto cosine = b.input("cos", {rows, dim / 2}), sine = b.input("sin", {rows, dim / 2});
  Tensor pos = b.input("pos", {}, Format::i32);
  const int64_t per = heads / groups, half = dim / 2;
  for (int l = 0; l < layers; ++l) {
    const std::string at = std::to_string(l);
    auto [t, k, n] = axes<"t k n">();
    auto g = axis("g", groups), r = axis("r", per), d = axis("d", dim), e = axis("e", dim), p = axis("p", half), two = axis("two", 2), j = axis("j"), c = axis("c"), f = axis("f", hidden);
    auto norm = [&](Tensor y, const std::string& name) {
      auto w = b.param(name + at, {model});
      auto ms = map({t}, sum(k, square(y(t, k))) / double(model), "ms");
      auto inv = map({t}, recip(sqrt(ms(t) + 1e-6)), "rms");
      return map({t, k}, y(t, k) * inv(t) * w(k), name);
    };
    auto h = norm(x, "norm1_");
    auto wq = b.param("wq" + at, {groups, per, dim, model}), wk = b.param("wk" + at, {groups, dim, model}), wv = b.param("wv" + at, {groups, dim, model}), wo = b.param("wo" + at, {model, groups, per, dim});
    auto q = map({t, g, r, d}, sum(k, h(t, k) * wq(g, r, d, k)), "q");
    auto kk = map({t, g, d}, sum(k, h(t, k) * wk(g, d, k)), "k");
    auto v = map({t, g, d}, sum(k, h(t, k) * wv(g, d, k)), "v");
    auto rope = [&](auto read, std::vector<Axis> lead, const std::string& name) {
      lead.push_back(two);
      lead.push_back(p);
      const Scalar first = read(Index(p)), second = read(Index(p) + Index(half));
      return map(lead, select(iota(two) == index_literal(b, 0), first * cosine(t, p) - second * sine(t, p), second * cosine(t, p) + first * sine(t, p)), name);
    };
    auto qr = rope([&](Index i) { return q(t, g, r, i); }, {t, g, r}, "q rotated");
    auto kr = rope([&](Index i) { return kk(t, g, i); }, {t, g}, "k rotated");
    Tensor keyed = kr, values = v;
    Scalar score, value;
    if (cached) {
      auto kc = b.state("kcache" + at, {keys, groups, 2, half}), vc = b.state("vcache" + at, {keys, groups, dim});
      auto zero = axis("zero", 1);
      (void)zero;
      keyed = map({j, g, two, p}, select(iota(j) == pos(), kr(Index(0), g, two, p), kc(j, g, two, p)), "keys");
      values = map({j, g, e}, select(iota(j) == pos(), v(Index(0), g, e), vc(j, g, e)), "values");
      b.output(keyed, "kcache" + at + "'");
      b.output(values, "vcache" + at + "'");
      score = masked(j <= Index(pos()), sum({two, p}, qr(t, g, r, two, p) * keyed(j, g, two, p)) / std::sqrt(double(dim)));
    } else {
      score = masked(j <= t, sum({two, p}, qr(t, g, r, two, p) * keyed(j, g, two, p)) / std::sqrt(double(dim)));
    }
    auto s = map({t, g, r, j}, score, "S");
    auto top = max(j, s(t, g, r, j));
    auto w = map({t, g, r, j}, exp(s(t, g, r, j) - top), "W");
    auto prob = map({t, g, r, j}, w(t, g, r, j) / sum(j, w(t, g, r, j)), "P");
    auto o = map({t, g, r, e}, sum(j, prob(t, g, r, j) * values(j, g, e)), "o");
    auto y = map({t, n}, sum({g, r, e}, o(t, g, r, e) * wo(n, g, r, e)), "attention out");
    auto x1 = map({t, k}, x(t, k) + y(t, k), "x1_" + at);
    auto h2 = norm(x1, "norm2_");
    auto wg = b.param("wg" + at, {hidden, model}), wu = b.param("wu" + at, {hidden, model}), wd = b.param("wd" + at, {model, hidden});
    auto gate = map({t, f}, sum(k, h2(t, k) * wg(f, k)), "gate"), up = map({t, f}, sum(k, h2(t, k) * wu(f, k)), "up");
    auto act = map({t, f}, silu(gate(t, f)) * up(t, f), "act");
    auto down = map({t, n}, sum(f, act(t, f) * wd(n, f)), "down");
    x = map({t, k}, x1(t, k) + down(t, k), "x2_" + at);
  }
  b.output(x, "out");
  return b.graph();
}
double milliseconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}
int nodes(const Graph& g) {
  int n = 0;
  for (auto& x : g.nodes) n += !x.input();
  return n;
}
}  // namespace

TEST(models, a_transformer_block) {
  const Graph g = decoder(1, 256, 0, 512, 8, 4, 64, 1024, false);
  rewrite::Optimized o;
  const double ms = milliseconds([&] { o = rewrite::optimize(g); });
  std::printf("block: %d nodes -> %d nodes, %d kernels, %.1f ms\n", nodes(g), nodes(o.graph), kernels(o.graph), ms);
  EXPECT_TRUE(fired(o, "stabilize_softmax"));
  EXPECT_TRUE(fired(o, "merge_siblings"));
  // Two mean squares, q, k, v, attention, its projection with the residual, gate and up with their product, down with
  // the residual: 9 of 35.
  EXPECT_EQ(kernels(o.graph), 9) << rewrite::explain(o.trace);
  EXPECT_FALSE(stores(o.graph, {256, 4, 2, 256}));  // no scores
  EXPECT_LT(ms, 500);                               // 20 ms on an idle core; a loaded one must not fail the build
  const Graph small = decoder(1, 6, 0, 8, 4, 2, 4, 10, false);
  auto tiny = rewrite::optimize(small);
  Feed f;
  double seed = 1;
  for (auto& n : small.nodes)
    if (n.input()) f[n.name] = type_of(n.input()->format) == Type::real ? u(seed++, eval::bound(n.input()->shape)) : number(0);
  expect_refines(small, tiny.graph, f, "block");
}
TEST(models, two_layers_of_decoding_with_caches) {
  const Graph g = decoder(2, 1, 12, 8, 4, 2, 4, 10, true);
  auto o = rewrite::optimize(g);
  Feed f;
  double seed = 1;
  for (auto& n : g.nodes)
    if (n.input()) f[n.name] = type_of(n.input()->format) == Type::real ? u(seed++, eval::bound(n.input()->shape)) : number(7);
  expect_refines(g, o.graph, f, "decode");
}
TEST(models, thirty_six_layers_of_decoding) {
  const Graph g = decoder(36, 1, 4096, 2048, 16, 8, 128, 6144, true);
  rewrite::Optimized o;
  const double ms = milliseconds([&] { o = rewrite::optimize(g); });
  std::printf("36 layers: %d nodes -> %d nodes, %d kernels, %.1f ms\n", nodes(g), nodes(o.graph), kernels(o.graph), ms);
  EXPECT_LT(kernels(o.graph), nodes(g) / 2);
  EXPECT_LT(ms, 10000);  // 1 s on an idle core
}
