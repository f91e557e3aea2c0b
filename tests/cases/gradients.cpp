// Part C of the cases: gradients.
#include "tang/models/attention.hpp"
#include "tang/models/softmax.hpp"

#include "cases/everywhere.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
double magnitude(const Array& a) {
  double s = 0;
  for (double v : a.r) s += std::fabs(v);
  return s;
}

struct Head {
  int64_t n = 5, d = 4;
  double scale = 0.5;
  std::vector<std::string> more = {}; // inputs, besides q, k and v, to differentiate by
};

using Out = std::map<std::string, Array>;

// L = sum(w * out), w = u(0.3): outputs dq, dk, dv and d<more>, with q = u(1), k = u(2), v = u(3).
Out gradients(const Head& z, const std::function<void(Builder&, AttentionOptions&, std::map<std::string, Tensor>&)>& setup,
              Inputs data = {}) {
  Builder b;
  std::map<std::string, Tensor> t;
  double fill = 1;
  for (auto* name : {"q", "k", "v"}) {
    t[name] = b.input(name, {1, 1, z.n, z.d});
    data[name] = u(fill++, {1, 1, z.n, z.d});
  }
  const Tensor w = b.input("w", {1, 1, z.n, z.d});
  data["w"] = u(0.3, {1, 1, z.n, z.d});
  AttentionOptions o;
  o.scale = z.scale;
  o.mask = causal();
  setup(b, o, t);
  const Attention a = attention(t["q"], t["k"], t["v"], o);
  std::vector<std::string> names{"q", "k", "v"};
  names.insert(names.end(), z.more.begin(), z.more.end());
  std::vector<Tensor> by;
  for (auto& n : names) by.push_back(t[n]);
  const auto d = vjp(a.out, w, by);
  for (size_t k = 0; k < names.size(); ++k) b.output(d[k], "d" + names[k]);
  return everywhere(b.graph(), data);
}

void just_causal(Builder&, AttentionOptions&, std::map<std::string, Tensor>&) {}

// The scalar at [0] of a loss over the axes of what it reads.
Tensor one(const Scalar& s) {
  const Axis i = axis("one", Extent(1));
  return map({i}, s);
}
} // namespace

TEST(cases, case_05_grad_keys_that_do_not_fill_a_tile) {
  auto ahead = [](Builder&, AttentionOptions& a, std::map<std::string, Tensor>&) {
    a.changes = {[](const Scalar& s, const Spot& p) { return s + to_real(iota(p.position - Index(p.key))); }};
  };
  const Out o = gradients({}, ahead);
  EXPECT_NEAR(magnitude(o.at("dq")), 6.245105297423, 1e-11);
  EXPECT_NEAR(magnitude(o.at("dk")), 7.065343585183, 1e-11);
  EXPECT_NEAR(magnitude(o.at("dv")), 3.524088939833, 1e-11);
  const Out longer = gradients({257}, ahead);
  for (auto& [name, a] : longer)
    for (double v : a.r) ASSERT_TRUE(std::isfinite(v)) << name;
}

TEST(cases, case_21_grad_head_dimension_128) {
  const Out o = gradients({3, 128, 1 / std::sqrt(128.0)}, just_causal);
  EXPECT_NEAR(magnitude(o.at("dq")), 278.391252257335, 1e-9);
  EXPECT_NEAR(magnitude(o.at("dk")), 329.867730214755, 1e-9);
  EXPECT_NEAR(magnitude(o.at("dv")), 184.407712021681, 1e-9);
}

TEST(cases, case_24_grad_soft_cap) {
  const Out o = gradients({}, [](Builder&, AttentionOptions& a, auto&) { a.changes = {soft_cap(5)}; });
  EXPECT_NEAR(magnitude(o.at("dq")), 6.729341846290, 1e-11);
  EXPECT_NEAR(magnitude(o.at("dk")), 7.518415533313, 1e-11);
  EXPECT_NEAR(magnitude(o.at("dv")), 6.562554332917, 1e-11);
  // tanh far out: a slope of 0, not NaN.
  Builder b;
  Tensor x = b.input("x", {9});
  const Axis i = axis("i");
  b.output(grad(one(sum(i, tanh(x(i)))), {x})[0], "dx");
  const Array d = everywhere(b.graph(), {{"x", eval::reals({9}, {-1000, -89, -50, -44.2, 0, 44.2, 50, 89, 1000})}}, "dx");
  for (size_t k = 0; k < 9; ++k) EXPECT_NEAR(d.r[k], k == 4 ? 1 : 0, 1e-30) << k;
}

TEST(cases, case_31_grad_maximum_with_ties_goes_to_the_first) {
  Builder b;
  Tensor x = b.input("x", {4, 3});
  auto [i, c] = axes<"i c">();
  b.output(grad(one(sum(c, max(i, x(i, c)))), {x})[0], "dx");
  const Array d = everywhere(b.graph(), {{"x", filled({4, 3}, 1)}}, "dx");
  for (size_t k = 0; k < 12; ++k) EXPECT_EQ(d.r[k], k < 3 ? 1 : 0) << k;
}

TEST(cases, case_46_grad_branch_not_taken) {
  Builder b;
  Tensor x = b.input("x", {1}), r = b.input("r", {3, 2});
  auto [i, j, k] = axes<"i j k">();
  const Scalar norm = sqrt(sum(k, square(r(j, k))));
  b.output(grad(map({i}, select(x(i) < 1, x(i), sqrt(x(i)))), {x})[0], "dx");
  b.output(grad(one(sum(j, select(norm > 0.5, norm, 1.0))), {r})[0], "dr");
  auto out = everywhere(b.graph(), {{"x", filled({1}, 0)}, {"r", eval::reals({3, 2}, {1, 2, 3, 4, 0, 0})}});
  EXPECT_EQ(out["dx"].r[0], 1);
  expect_near(out["dr"], {0.447213595, 0.894427191, 0.6, 0.8, 0, 0}, 1e-9);
}

TEST(cases, case_48_grad_atan2_masked_at_the_origin) {
  Builder b;
  Tensor a = b.input("a", {3}), m = b.input("m", {3});
  const Axis i = axis("i");
  b.output(grad(one(sum(i, select(m(i) > 0.5, 0.0, atan2(a(i), a(i))))), {a})[0], "da");
  const Array d =
      everywhere(b.graph(), {{"a", eval::reals({3}, {3, 0, -5})}, {"m", eval::reals({3}, {0, 1, 0})}}, "da");
  for (double v : d.r) EXPECT_EQ(v, 0);
}

TEST(cases, case_50_grad_of_equal_parameters) {
  Builder b;
  Tensor w1 = b.param("w1", {1}), w2 = b.param("w2", {1});
  const Axis i = axis("i");
  const auto d = grad(map({i}, w1(i) + w2(i)), {w1, w2});
  b.output(d[0], "d1");
  b.output(d[1], "d2");
  auto out = everywhere(b.graph(), {{"w1", filled({1}, 3)}, {"w2", filled({1}, 3)}});
  EXPECT_EQ(out["d1"].r[0], 1);
  EXPECT_EQ(out["d2"].r[0], 1);
}

TEST(cases, case_52_grad_of_an_embedding_adds_repeated_indices) {
  for (bool padding : {false, true}) {
    Builder b;
    Tensor table = b.param("table", {4, 2}), idx = b.input("idx", {4}, Format::i32);
    auto [t, d] = axes<"t d">();
    Scalar row = table(idx(t), d);
    if (padding) row = masked(Index(idx(t)) > 0, row);
    b.output(grad(one(sum({t, d}, row)), {table})[0], "dtable");
    const Array out = everywhere(b.graph(), {{"table", u(1, {4, 2})}, {"idx", eval::indices({4}, {0, 0, 0, 2})}}, "dtable");
    const double first = padding ? 0 : 3;
    EXPECT_EQ(out.r, (std::vector<double>{first, first, 0, 0, 1, 1, 0, 0}));
  }
}

TEST(cases, case_54_grad_into_captured_biases) {
  // Additive per head: softmax does not see it.
  const Out bias = gradients({5, 4, 0.5, {"b"}}, [](Builder& b, AttentionOptions& a, auto& t) {
    const Tensor h = t["b"] = b.input("b", {1});
    a.changes = {[h](const Scalar& s, const Spot& p) { return s + h.at(coords(p.heads)); }};
  }, {{"b", u(4, {1})}});
  EXPECT_NEAR(bias.at("db").r[0], 0, 1e-12);
  // A table of distances q - kv + 5; entries for negative distances are never visible.
  const Out table = gradients({5, 4, 0.5, {"table"}}, [](Builder& b, AttentionOptions& a, auto& t) {
    const Tensor e = t["table"] = b.input("table", {10});
    a.changes = {[e](const Scalar& s, const Spot& p) { return s + e.at({p.position - Index(p.key) + Index(5)}); }};
  }, {{"table", filled({10}, 0)}});
  expect_near(table.at("dtable"), {0, 0, 0, 0, 0, -2.091864139, 1.977442954, -0.788114138, 0.968673013, -0.066137690}, 1e-8);
  const Out scale = gradients({5, 4, 0.5, {"scale"}}, [](Builder& b, AttentionOptions& a, auto& t) {
    a.changes = {scale_by(t["scale"] = b.input("scale", {}))};
  }, {{"scale", filled({}, 1)}});
  EXPECT_NEAR(scale.at("dscale").r[0], -1.476207337, 1e-8);
}

// Blocks of keys and of queries of different sizes, in one group that makes dq, dk and dv and in a group for each
// side: one gradient.
TEST(cases, case_56_grad_backward_tiles_of_different_sizes) {
  Builder b;
  const std::vector<Extent> shape{1, 1, 12, 4};
  const Tensor q = b.input("q", shape), k = b.input("k", shape), v = b.input("v", shape), w = b.input("w", shape);
  AttentionOptions a;
  a.mask = causal();
  const auto d = vjp(attention(q, k, v, a).out, w, {q, k, v});
  const char* const names[] = {"dq", "dk", "dv"};
  for (size_t n = 0; n < 3; ++n) b.output(d[n], names[n]);
  const Graph g = b.graph();
  Inputs in;
  for (auto& [name, first] : std::map<std::string, double>{{"q", 1}, {"k", 2}, {"v", 3}, {"w", 0.3}}) {
    in[name] = u(first, {1, 1, 12, 4});
    for (double& x : in[name].r) x = double(float(x));
  }
  const auto want = everywhere(g, in);
  device::CompilerOptions tools;
  tools.search = {"/usr/local/bin", "/usr/bin", "/bin"};
  const auto compiler = std::make_shared<Compiler>(tools);
  int different = 0; // groups whose two sides have blocks of different sizes
  for (bool joint : {true, false})
    for (auto [one, other] : {std::pair<int64_t, int64_t>{4, 4}, {4, 8}, {8, 4}}) {
      SCOPED_TRACE(std::string(joint ? "one group" : "two groups") + ", tiles of " + std::to_string(one) + " and " +
                   std::to_string(other));
      run::Options o;
      o.target = target::c_target(4, 1);
      for (auto& s : run::derive(g, o).plan.steps)
        for (auto& m : s.group.members) o.schedule.groups[schedule::key(*run::derive(g, o).plan.graph, m.node)].joint = joint;
      const run::Derivation apart = run::derive(g, o);
      int group = 0;
      for (auto& s : apart.plan.steps) {
        if (std::count(s.group.extent.begin(), s.group.extent.end(), 12) < 2) continue; // queries and keys
        auto& fields = o.schedule.groups[schedule::key(*apart.plan.graph, s.group.members[0].node)];
        fields.rows = 4, fields.vectors = 1;
        int side = group++; // of several groups each begins with the other size
        for (size_t x = 0; x < s.group.extent.size(); ++x)
          if (s.group.extent[x] == 12) fields.tile[int(x)] = side++ % 2 ? other : one;
        different += one != other;
      }
      run::Program p(g, compiler, std::make_shared<Cpu>(1), o);
      const verify::Report r = verify::verify(p, g, in, 2e-6);
      for (auto& c : r.kernels) EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): " << c.error << " " << c.why;
      for (auto& c : r.outputs) EXPECT_TRUE(c.ok) << c.what << ": " << c.error;
    }
  EXPECT_GE(different, 6);
  for (auto* name : names) EXPECT_GT(magnitude(want.at(name)), 0.1) << name;
}
