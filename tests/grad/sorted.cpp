// Sorted keys: the gradient of what is gathered folds, for each place, its own run of keys.
#include "grad/check.hpp"
#include "run/harness.hpp"
#include "tang/grad/surface.hpp"
#include "tang/rewrite/driver.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;
using namespace tang::test;

namespace {
struct Size {
  int64_t places = 7, keys = 40, out = 5, in = 6;
};

// y[t] = w[key[t]] x[t]: the expert of each token.
Graph experts(const Size& z, bool sorted) {
  Builder b;
  const Tensor w = b.param("w", {z.places, z.out, z.in}), x = b.input("x", {z.keys, z.in});
  Tensor key = b.input("key", {z.keys}, Format::i32);
  if (sorted) key = set_sorted(key);
  auto [t, o, i] = axes<"t o i">();
  const Tensor y = map({t, o}, sum(i, w(Index(key(t)), o, i) * x(t, i)), "y");
  const auto d = diff::vjp(y, b.input("dy", {z.keys, z.out}), {w, x});
  b.output(d[0], "dw");
  b.output(d[1], "dx");
  return b.graph();
}

Array keys_of(const Size& z, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<int64_t> v;
  for (int64_t k = 0; k < z.keys; ++k) v.push_back(int64_t(rng() % uint64_t(z.places)));
  std::sort(v.begin(), v.end());
  return eval::indices({z.keys}, v);
}

void expect_same(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.shape, b.shape) << what;
  for (int64_t k = 0; k < a.size(); ++k) ASSERT_EQ(a.at(k).r, b.at(k).r) << what << " at " << k;
}

// Both graphs as written and as optimized: bit-equal values; the terms that the sorted one visits.
int64_t expect_equal(const Graph& plain, const Graph& sorted, const Inputs& in) {
  eval::Oracle dense(plain, in), runs(sorted, in), best(rewrite::optimize(sorted).graph, in);
  for (auto& o : plain.outputs) {
    auto port = [&](const Graph& g) {
      for (auto& x : g.outputs)
        if (x.name == o.name) return x.port;
      return Port{};
    };
    expect_same(dense.port(o.port), runs.port(port(sorted)), o.name);
    expect_same(dense.port(o.port), best.port(port(rewrite::optimize(sorted).graph)), o.name + " optimized");
  }
  return runs.terms();
}
} // namespace

TEST(grad_sorted, values_are_those_of_the_gated_sum) {
  for (const Size& z : {Size{}, Size{1, 9}, Size{30, 4}, Size{5, 1}, Size{3, 0}})
    for (uint64_t seed : {1, 2, 3}) {
      const Graph plain = experts(z, false), sorted = experts(z, true);
      expect_equal(plain, sorted, inputs_of(plain, {{"key", keys_of(z, seed)}}));
    }
}

TEST(grad_sorted, each_term_is_visited_once) {
  const Size z{64, 256, 4, 4};
  const Graph plain = experts(z, false), sorted = experts(z, true);
  const int64_t runs = expect_equal(plain, sorted, inputs_of(plain, {{"key", keys_of(z, 1)}}));
  // dw and dx, a copy of dy, and the first of each run.
  EXPECT_LE(runs, 2 * z.keys * z.out * z.in + z.keys * z.out + (z.places + 1) * z.keys);
  // The sum over keys: from two values of its place, and no key is read again.
  const Graph best = rewrite::optimize(sorted).graph;
  for (auto& [g, gathers] : {std::pair{best, false}, {rewrite::optimize(plain).graph, true}}) {
    Port dw{};
    for (auto& o : g.outputs)
      if (o.name == "dw") dw = o.port;
    const ir::Comp& n = *g[dw.node].comp();
    ASSERT_EQ(n.domain.size(), 1u);
    EXPECT_EQ(n.domain[0].size(), 2u);
    bool reads_key = false;
    for (auto& a : n.args) reads_key |= g[a.from.node].name == "key";
    EXPECT_EQ(reads_key, gathers);
  }
}

// Keys of a batch are sorted row by row; a key that is moved, and one table read by two keys.
TEST(grad_sorted, rows_of_keys_offsets_and_two_keys) {
  auto build = [](bool sorted) {
    Builder b;
    const Tensor table = b.param("table", {9, 4});
    Tensor key = b.input("key", {2, 11}, Format::i32), other = b.input("other", {6}, Format::i32);
    if (sorted) set_sorted(key), set_sorted(other);
    auto [n, t, c, s] = axes<"n t c s">();
    const Tensor y = map({n, t, c}, square(table(Index(key(n, t)) + Index(2), c)), "y");
    const Tensor z = map({s, c}, table(Index(other(s)), c) * to_real(iota(s)), "z");
    const Tensor loss = map(std::vector<Axis>{}, sum({n, t, c}, y(n, t, c)) + sum({s, c}, z(s, c)), "loss");
    b.output(diff::grad(loss, std::vector<Tensor>{table})[0], "dtable");
    return b.graph();
  };
  const Graph plain = build(false), sorted = build(true);
  const std::vector<int64_t> rows{-2, -2, -1, 0, 0, 0, 3, 3, 5, 6, 6, -1, -1, -1, -1, 2, 2, 2, 2, 2, 2, 6};
  expect_equal(plain, sorted, inputs_of(plain, {{"key", eval::indices({2, 11}, rows)}, {"other", eval::indices({6}, {0, 0, 4, 4, 4, 8})}}));
}

// A place that a stride and an offset, or two axes, make: one run a place, whatever else bounds the terms.
TEST(grad_sorted, places_that_several_axes_make) {
  auto build = [](bool sorted) {
    Builder b;
    Tensor key = b.input("key", {30}, Format::i32);
    if (sorted) key = set_sorted(key);
    const Tensor x = b.input("x", {30, 3});
    auto [t, c] = axes<"t c">();
    const Axis high = axis("high", Extent(4)), low = axis("low", Extent(2));
    const Index place = 2 * Index(high) + Index(low) - Index(1);
    b.output(map({high, low, c}, sum(t, masked(Index(key(t)) + Index(1) == place && Index(t) >= Index(c), x(t, c)))), "y");
    return b.graph();
  };
  const Graph plain = build(false), sorted = build(true);
  const Inputs in = inputs_of(plain, {{"key", keys_of({.places = 9, .keys = 30}, 2)}});
  expect_equal(plain, sorted, in);
  const Graph best = rewrite::optimize(sorted).graph;
  int sums = 0;
  for (auto& node : best.nodes) {
    const ir::Comp* n = node.comp();
    if (!n || !n->monoid || best[n->args[0].from.node].name == "key") continue; // the count of smaller keys
    ++sums;
    for (auto& a : n->args) EXPECT_NE(best[a.from.node].name, "key"); // two ends of a run, and x
    ASSERT_EQ(n->domain.size(), 1u);
    EXPECT_EQ(n->domain[0].size(), 3u);
  }
  EXPECT_EQ(sums, 1);
}

TEST(grad_sorted, kernels_of_the_c_target_are_right) {
  for (const Size& z : {Size{}, Size{33, 300, 24, 40}, Size{5, 2000, 16, 16}, Size{40, 3}}) {
    const Graph g = experts(z, true);
    run::Options o;
    o.guards = true;
    run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(2), o);
    const auto report = verify::verify(p, g, inputs_of(g, {{"key", keys_of(z, 5)}}), 1e-5, 2);
    for (auto& c : report.kernels)
      EXPECT_TRUE(c.ok) << z.keys << ": " << c.what << " (" << c.schedule << "): error " << c.error << ". " << c.why;
    for (auto& c : report.outputs) EXPECT_TRUE(c.ok) << z.keys << ": " << c.what << " error " << c.error;
    EXPECT_TRUE(report.trespass.empty());
  }
}

TEST(grad_sorted, text_says_so_and_reads_it_back) {
  const Graph g = experts({}, true);
  const std::string text = text::print(g);
  EXPECT_NE(text.find("input key[40] : i32 sorted"), std::string::npos) << text;
  EXPECT_EQ(ir::hash(text::parse(text, "sorted.tang")), ir::hash(g));
  EXPECT_NE(ir::hash(g), ir::hash(experts({}, false)));
}

TEST(grad_sorted, what_cannot_be_sorted_is_said) {
  Builder b;
  const Tensor x = b.input("x", {4}), one = b.input("one", {}, Format::i32), key = b.input("key", {4}, Format::i32);
  auto [t] = axes<"t">();
  const Tensor y = map({t}, x(Index(key(t))), "y");
  auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) { return e.what(); }
    return "";
  };
  EXPECT_NE(message([&] { set_sorted(x); }).find("integer format"), std::string::npos);
  EXPECT_NE(message([&] { set_sorted(one); }).find("rank 0"), std::string::npos);
  EXPECT_NE(message([&] { set_sorted(y); }).find("it is computed"), std::string::npos);
  EXPECT_NE(message([&] { set_sorted(key); }).find("after it was read"), std::string::npos);
  const Graph g = experts({2, 3}, true);
  const Inputs in = inputs_of(g, {{"key", eval::indices({3}, {0, 1, 0})}});
  EXPECT_NE(message([&] { eval::run(g, in); }).find("entry 2 is 0 after 1"), std::string::npos);
}
