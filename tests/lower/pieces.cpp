// 32-bit operands on matrix instructions, in 16-bit pieces: results against the oracle, in the simulator of kernels and
// in that of roles; what infinite and huge values become.
#include <cmath>

#include "lower/role_runs.hpp"
#include "tang/ir/surface.hpp"
#include "tang/kernel/rounding.hpp"
#include "tang/kernel/simulate_roles.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr auto f32 = ir::Format::f32;

schedule::Schedule in(int pieces) {
  schedule::Schedule s;
  s.pieces = pieces;
  return s;
}

ir::Graph product(int64_t m, int64_t n, int64_t k, bool a_apart, bool b_apart, ir::Format f = f32) {
  ir::Builder b;
  using Shape = std::vector<ir::Extent>;
  ir::Tensor x = b.input("a", a_apart ? Shape{k, m} : Shape{m, k}, f), y = b.input("b", b_apart ? Shape{k, n} : Shape{n, k}, f);
  auto [i, j, l] = ir::axes<"i j l">();
  b.output(ir::map({i, j}, ir::sum(l, (a_apart ? x(l, i) : x(i, l)) * (b_apart ? y(l, j) : y(j, l)))), "out", f);
  return b.graph();
}

ir::Graph attention(int64_t heads, int64_t rows, int64_t keys, int64_t d, bool causal, ir::Format f = f32) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {heads, rows, d}, f), k = b.input("k", {heads, keys, d}, f), v = b.input("v", {heads, keys, d}, f);
  auto [h, i, j, c, e] = ir::axes<"h i j c e">();
  ir::Scalar s = ir::sum(c, q(h, i, c) * k(h, j, c)) * 0.125;
  if (causal) s = ir::masked(j <= i, s);
  ir::Scalar w = ir::exp(s - ir::max(j, s)), l = ir::sum(j, w);
  b.output(ir::map({h, i, e}, ir::ratio(ir::sum(j, w * v(h, j, e)), l)), "out", f);
  return b.graph();
}

// Two sums over rows i whose weights are made of two contractions of a block.
ir::Graph weighed(int64_t heads, int64_t rows, int64_t keys, int64_t d) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {heads, rows, d}), k = b.input("k", {heads, keys, d}), v = b.input("v", {heads, keys, d}),
             o = b.input("o", {heads, rows, d}), top = b.input("top", {heads, rows}), flow = b.input("flow", {heads, rows});
  auto [h, i, j, c, e] = ir::axes<"h i j c e">();
  const ir::Scalar s = ir::sum(c, q(h, i, c) * k(h, j, c)) * 0.125, t = ir::sum(e, o(h, i, e) * v(h, j, e));
  const ir::Scalar w = ir::masked(j <= i, ir::exp(s - top(h, i)));
  b.output(ir::map({h, j, e}, ir::sum(i, w * o(h, i, e))), "dv");
  b.output(ir::map({h, j, c}, ir::sum(i, w * (t - flow(h, i)) * q(h, i, c))), "dk");
  return b.graph();
}

double error(const eval::Array& got, const eval::Array& want) {
  double off = 0, top = 0;
  for (size_t k = 0; k < want.r.size(); ++k)
    off = std::max(off, std::abs(got.r[k] - want.r[k])), top = std::max(top, std::abs(want.r[k]));
  return std::isfinite(off) ? off / top : INFINITY;
}

// The largest error of any output, over its largest value; every contraction is one of pieces.
double error_of(const ir::Graph& g, int pieces) {
  const Derived d = derive(g, in(pieces), warpgroups_alone());
  bool any = false;
  for (auto& l : d.program.kernels) {
    EXPECT_TRUE(l.roles || l.refused.empty()) << l.refused;
    any |= l.pieces > 0;
    if (!l.roles) continue;
    for (auto& m : l.kernel.memories) EXPECT_TRUE(m.home != kernel::Home::shared || m.pieces > 1) << l.schedule;
  }
  EXPECT_TRUE(any);
  eval::Inputs x = rounded_inputs(g);
  const auto got = simulate(d, x);
  double worst = 0;
  for (auto& [name, want] : eval::run(g, x)) worst = std::max(worst, error(got.at(name), filled(want)));
  return worst;
}

// The same through the statements of the roles, for several orders of events.
void expect_roles_agree(const ir::Graph& g) {
  const Derived d = derive(g, in(2), warpgroups_alone());
  const eval::Inputs x = rounded_inputs(g);
  int seen = 0;
  simulate(d, x, kernel::Order::reverse, [&](const lower::Lowered& l, const std::vector<kernel::Buffer>& before) {
    if (!l.roles) return;
    ++seen;
    std::vector<kernel::Buffer> want = before;
    EXPECT_TRUE(kernel::simulate(l.kernel, want).clean());
    const auto p = kernel::expand_roles(l.kernel, *l.roles);
    ASSERT_TRUE(bool(p)) << p.why();
    for (uint64_t seed : {0, 1, 2, 3}) {
      kernel::RoleOptions o;
      o.seed = seed, o.copies = seed == 1 ? kernel::RoleOptions::early : kernel::RoleOptions::late;
      std::vector<kernel::Buffer> got = before;
      const auto fault = kernel::simulate_roles(*p, got, o);
      EXPECT_FALSE(fault) << (fault ? fault->text : "");
      EXPECT_LT(difference(want, got), 1e-6) << l.label;
    }
  });
  EXPECT_GT(seen, 0);
}
} // namespace

// 16 bits of each side: the ends are missed by 2^-17 on average and random signs, three pieces hold all bits of f32.
TEST(pieces, products_are_as_near_as_their_pieces_say) {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      const ir::Graph g = product(130, 70, 200, a, b);
      EXPECT_LT(error_of(g, 2), 1e-5);
      EXPECT_GT(error_of(g, 2), 1e-7);
      EXPECT_LT(error_of(g, 3), 5e-7);
    }
  EXPECT_LT(error_of(product(33, 77, 55, false, false), 2), 1e-5); // rows that begin anywhere
}

TEST(pieces, attention_forward_and_weighed_sums) {
  for (bool causal : {false, true}) {
    EXPECT_LT(error_of(attention(2, 200, 150, 64, causal), 2), 1e-5);
    EXPECT_LT(error_of(attention(1, 130, 140, 128, causal), 2), 2e-5); // scores of 128 products, twice as large
  }
  EXPECT_LT(error_of(attention(1, 130, 140, 40, true), 3), 1e-6);
  EXPECT_LT(error_of(weighed(2, 150, 140, 64), 2), 2e-5);
}

TEST(pieces, roles_agree_with_the_kernel) {
  expect_roles_agree(product(130, 70, 200, false, true));
  expect_roles_agree(attention(1, 200, 150, 64, true));
  expect_roles_agree(weighed(1, 150, 140, 64));
}

// Attention of tf32 has fragments as operands, which matrix instructions take in 16 bits only; products do not.
TEST(pieces, tf32_weights_are_taken_in_pieces_and_products_are_not) {
  const auto tf32 = ir::Format::tf32;
  const Derived attends = derive(attention(1, 200, 150, 64, true, tf32), {}, warpgroups_alone());
  EXPECT_EQ(attends.program.kernels.back().pieces, 2);
  const Derived multiplies = derive(product(128, 128, 128, false, false, tf32), {}, warpgroups_alone());
  EXPECT_EQ(multiplies.program.kernels.back().pieces, 0);
  EXPECT_TRUE(multiplies.program.kernels.back().roles);
}

TEST(pieces, products_of_f32_are_ordinary_arithmetic_where_the_schedule_says_nothing) {
  const Derived d = derive(product(128, 128, 128, false, false), {}, warpgroups_alone());
  EXPECT_FALSE(d.program.kernels.back().roles);
  EXPECT_EQ(d.program.kernels.back().refused, "an operand is f32");
}

// What f32 makes of the ends of its range: infinite stays infinite, huge stays finite (but for the last 2^-17 of the
// range, whose pieces add up to more), tiny stays tiny.
TEST(pieces, the_ends_of_the_range) {
  const ir::Graph g = product(16, 16, 16, false, false);
  const Derived d = derive(g, in(2), warpgroups_alone());
  eval::Inputs x = random_inputs(g);
  std::fill(x["a"].r.begin(), x["a"].r.end(), 0.0);
  for (size_t r = 0; r < 16; ++r) x["a"].r[16 * r] = 1;
  const double huge = 0x1.ffp127; // beyond the largest number of 16 bits
  x["a"].r[0] = INFINITY, x["a"].r[16] = -INFINITY, x["a"].r[32] = huge, x["a"].r[48] = 1e-30, x["a"].r[64] = std::nan("");
  std::fill(x["b"].r.begin(), x["b"].r.end(), 1.0); // exact in one piece: the other is 0
  const auto out = simulate(d, x).at("out");
  EXPECT_EQ(out.r[0], INFINITY);
  EXPECT_EQ(out.r[16], -INFINITY);
  EXPECT_NEAR(out.r[32] / huge, 1, 1e-5);
  EXPECT_NEAR(out.r[48] / 1e-30, 1, 1e-5);
  EXPECT_TRUE(std::isnan(out.r[64]));
  EXPECT_EQ(out.r[80], 1);
}

// The bound counts the roundings of the order and what the pieces leave out, and no rounding to 16 bits.
TEST(pieces, the_bound_of_a_product) {
  for (int pieces : {2, 3}) {
    const Derived d = derive(product(128, 64, 256, false, false), in(pieces), warpgroups_alone());
    std::map<int, kernel::Rounding> of;
    for (auto& l : d.program.kernels) {
      kernel::Roundings here;
      for (auto& a : l.arguments) {
        const int* id = std::get_if<int>(&a.what);
        here.push_back(id && of.count(*id) ? std::optional(of.at(*id)) : std::nullopt);
      }
      kernel::follow(l.kernel, 1, here);
      for (size_t k = 0; k < l.arguments.size(); ++k) {
        const int* id = std::get_if<int>(&l.arguments[k].what);
        if (id && here[k]) of[*id] = *here[k];
        if (id || !l.arguments[k].written) continue;
        ASSERT_TRUE(here[k] && here[k]->known());
        const double ends = (pieces + 1) * std::ldexp(1.0, -8 * pieces), sums = 400 * 0x1p-24;
        EXPECT_GE(here[k]->bound(), ends);
        EXPECT_LE(here[k]->bound(), 1.1 * ends + sums);
      }
    }
  }
}
