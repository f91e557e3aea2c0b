// Padding: read guards of convolutions and pools, and when fusion may drop one.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr const char* guard = "guard_to_absence";
Graph conv(int64_t n = 5) {
  Builder b;
  auto im = b.input("im", {n}), w = b.input("w", {3});
  auto x = axis("x", n), a = axis("a", 3);
  b.output(map({x}, sum(a, im.at_or(0.0, {Index(x) + a - 1}) * w(a))), "y");
  return b.graph();
}
Graph pool(double pad) {
  Builder b;
  auto im = b.input("im", {2});
  auto x = axis("x", 2), a = axis("a", 3);
  b.output(map({x}, max(a, im.at_or(pad, {Index(x) + a - 1}))), "y");
  return b.graph();
}
}  // namespace

TEST(padding, conv_guard_leaves) {
  Feed f{{"im", u(1, {5})}, {"w", u(2, {3})}};
  witness("conv", conv(), f, {guard});
  f["w"] = with(f["w"], {0}, inf);  // 0 * inf was NaN
  witness("conv, weight inf", conv(), f, {guard});
}
TEST(padding, max_pool_leaves_only_with_the_identity_case_61) {
  const Feed f{{"im", filled({2}, [](int64_t k) { return -1.0 - double(k); })}};
  auto o = witness("-inf", pool(-inf), f, {guard});
  EXPECT_EQ(eval::run(o.graph, f).at("y").r, (std::vector<double>{-1, -1}));
  witness("0", pool(0), f, {}, {guard});
}
TEST(padding, average_pools) {
  for (bool counted : {false, true}) {
    Builder b;
    auto im = b.input("im", {4});
    auto x = axis("x", 4), a = axis("a", 3);
    const Index at = Index(x) + a - 1;
    const Scalar total = sum(a, im.at_or(0.0, {at}));
    const Scalar n = counted ? sum(a, 1.0 + 0.0 * to_real(iota(a))) : sum(a, masked(at >= 0 && at <= 3, 1.0 + 0.0 * to_real(iota(a))));
    b.output(map({x}, total / n), "y");
    witness(counted ? "counted" : "not counted", b.graph(), {{"im", u(1, {4})}}, {guard});
  }
}
TEST(padding, a_merged_sum_and_count_keeps_the_guard) {
  Builder b;
  auto im = b.input("im", {4});
  auto x = axis("x", 4), a = axis("a", 3);
  MonoidSpec two{"sum and count", {expr::real(0), expr::real(0)}, [](Pool&, const std::vector<expr::E>& l, const std::vector<expr::E>& r) {
                   expr::E s = l[0] + r[0], t = l[1] + r[1];
                   return std::vector<expr::E>{s, t};
                 }, true};
  auto s = fold(two, a, {im.at_or(0.0, {Index(x) + a - 1}), 1.0});
  b.output(map({x}, s[0] / s[1]), "y");
  witness("merged", b.graph(), {{"im", u(1, {4})}}, {}, {guard});
}
TEST(padding, a_guard_stays_where_the_term_is_not_the_identity) {
  {
    Builder b;
    auto im = b.input("im", {4});
    auto x = axis("x", 4), a = axis("a", 3);
    b.output(map({x}, sum(a, exp(im.at_or(0.0, {Index(x) + a - 1})))), "y");
    witness("exp", b.graph(), {{"im", u(1, {4})}}, {}, {guard});
  }
  Builder b;
  auto p = b.input("a", {3}), q = b.input("b", {3});
  auto i = axis("i", 3);
  auto z = axis("z", 1);
  b.output(map({z}, sum(i, p.at_or(0.0, {Index(i) - 1}) + q.at_or(0.0, {Index(i) + 1})) + 0.0 * to_real(iota(z))), "y");
  const Feed f{{"a", filled({3}, [](int64_t) { return 1.0; })}, {"b", filled({3}, [](int64_t) { return 1.0; })}};
  auto o = witness("a + b", b.graph(), f, {}, {guard});
  EXPECT_EQ(eval::run(o.graph, f).at("y").r[0], 4);
}
TEST(padding, both_guards_of_a_product_leave) {
  Builder b;
  auto p = b.input("a", {3}), q = b.input("b", {3});
  auto i = axis("i", 3), z = axis("z", 1);
  b.output(map({z}, sum(i, p.at_or(0.0, {Index(i) - 1}) * q.at_or(0.0, {Index(i) + 1})) + 0.0 * to_real(iota(z))), "y");
  auto o = witness("a * b", b.graph(), {{"a", u(1, {3})}, {"b", u(2, {3})}}, {guard});
  for (auto& n : o.graph.nodes)
    if (auto* c = n.comp(); c && c->monoid) {
      EXPECT_EQ(c->domain.size(), 1u);
      EXPECT_EQ(c->domain[0].size(), 2u);
    }
}
TEST(padding, a_comparison_sees_the_nan_that_zero_times_inf_makes) {
  for (bool order : {true, false}) {
    Builder b;
    auto a = b.input("a", {3}), c = b.input("c", {3});
    auto i = axis("i", 3), z = axis("z", 1);
    const Scalar cond = order ? 0.0 * c(i) < 1.0 : c(i) == c(i);
    b.output(map({z}, sum(i, select(cond, a.at_or(0.0, {Index(i) - 1}), 1.0)) + 0.0 * to_real(iota(z))), "y");
    witness(order ? "0*c < 1" : "c == c", b.graph(), {{"a", u(1, {3})}, {"c", filled({3}, [=](int64_t k) { return k ? 1. : order ? inf : nan_; })}}, {}, {guard});
  }
}
namespace {
template <class F>
void through(const char* name, F f, int64_t shift, std::vector<std::string> must, std::vector<std::string> never) {
  Builder b;
  auto x = b.input("x", {5}), w = b.input("w", {3});
  auto i = axis("i", 4), a = axis("a", 3), t = axis("t", 4);
  Tensor m = map({t}, f(x.at_or(0.0, {Index(t) + Index(shift)})), "m");
  b.output(map({i}, sum(a, m.at_or(0.0, {Index(i) + a - 1}) * w(a))), "y");
  witness(name, b.graph(), {{"x", u(1, {5})}, {"w", u(2, {3})}}, must, never);
}
}  // namespace
TEST(padding, a_padded_read_of_a_map_keeps_the_pads_zero) {
  through("relu", [](Scalar e) { return relu(e); }, 0, {guard}, {});
  through("exp", [](Scalar e) { return exp(e); }, 0, {guard}, {});
  through("longer input", [](Scalar e) { return relu(e); }, 1, {guard}, {"drop_guard"});
}
TEST(padding, the_outer_guard_goes_only_if_the_body_of_the_pads_is_the_pad) {
  for (bool is_exp : {false, true}) {
    Builder b;
    auto y = b.input("x", {4});
    auto j = axis("j", 5);
    const Scalar inner = y.at_or(0.0, {Index(j) - 1});
    b.output(map({j}, where(Index(j) >= 1 && Index(j) <= 4, is_exp ? exp(inner) : relu(inner), 0.0)), "out");
    if (is_exp)
      witness("exp", b.graph(), {{"x", u(1, {4})}}, {}, {"drop_guard"});
    else
      witness("relu", b.graph(), {{"x", u(1, {4})}}, {"drop_guard"});
  }
}
