// Other witnesses: monoids, gathers, materialization, faults.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr const char* flash = "stabilize_softmax";
double lse(const Array& x) {
  Builder b;
  auto t = b.input("x", {x.shape[0]});
  auto [i] = axes<"i">();
  auto z = axis("z", 1);
  const Scalar m = max(i, t(i));
  b.output(map({z}, m + log(sum(i, exp(t(i) - m))) + 0.0 * to_real(iota(z))), "lse");
  auto o = witness("logsumexp", b.graph(), {{"x", x}}, {flash});
  return eval::run(o.graph, {{"x", x}}).at("lse").r[0];
}
}  // namespace

TEST(other, logsumexp_case_39) {
  EXPECT_EQ(lse(eval::reals({2}, {-inf, -inf})), -inf);
  EXPECT_EQ(lse(eval::reals({0}, {})), -inf);
  EXPECT_NEAR(lse(eval::reals({3}, {-inf, 1000, 1000})), 1000.6931471805599, 1e-9);
}
TEST(other, welford_is_the_two_pass_variance) {
  Builder b;
  auto x = b.input("x", {2, 5});
  auto [i, d] = axes<"i d">();
  const Scalar mean = 0.2 * sum(d, x(i, d));
  b.output(map({i}, sum(d, square(x(i, d) - mean))), "two");
  auto w = fold(welford(), d, {1.0, x(i, d), 0.0});
  b.output(map({i}, w[2]), "one");
  auto o = witness("welford", b.graph(), {{"x", u(1, {2, 5})}});
  for (auto& order : orders()) {
    eval::Options opt;
    opt.order = order;
    auto out = eval::run(o.graph, {{"x", u(1, {2, 5})}}, opt);
    EXPECT_EQ(unequal(out.at("two"), out.at("one")), "");
  }
}
TEST(other, argmax_ties_inf_nan_and_empty) {
  const std::vector<std::pair<std::vector<double>, int64_t>> all{{{2, 2}, 0}, {{-inf, -inf, -inf}, 0}, {{nan_, 4.6}, 0}, {{1, nan_, 3, nan_}, 1}, {{1, 7, 3, 7}, 1}, {{}, -1}};
  for (auto& [xs, want] : all) {
    Builder b;
    auto x = b.input("x", {int64_t(xs.size())});
    auto [i] = axes<"i">();
    auto z = axis("z", 1);
    auto r = fold(argmax(), i, {x(i), iota(i)});
    b.output(map({z}, select(r[1] == index_literal(b, INT64_MAX), index_literal(b, -1), r[1]) + iota(z)), "at");
    const Feed f{{"x", eval::reals({int64_t(xs.size())}, xs)}};
    auto o = witness("argmax", b.graph(), f);
    EXPECT_EQ(eval::run(o.graph, f).at("at").i[0], want);
  }
}
TEST(other, top_2_is_two_rounds_of_argmax_with_a_computed_bound) {
  for (auto& xs : std::vector<std::vector<double>>{{3, 1, 3, 2}, {-inf, 3}, {-inf, -inf, -inf}, {5}, {}, {1, nan_, 9}}) {
    const int64_t n = int64_t(xs.size());
    Builder b;
    auto x = b.input("x", {n});
    auto [i] = axes<"i">();
    auto r1 = fold(argmax(), i, {x(i), iota(i)});
    auto r2 = fold(argmax(), i, {masked(i != Index(r1[1]), x(i)), iota(i)});
    auto both = fold(topk(2), i, {x(i), -inf + 0.0 * x(i), iota(i), index_literal(b, INT64_MAX)});
    auto z = axis("z", 1);
    b.output(map({z}, r1[1] + iota(z)), "first");
    b.output(map({z}, r2[1] + iota(z)), "second");
    b.output(map({z}, both[3] + iota(z)), "second too");
    const Feed f{{"x", eval::reals({n}, xs)}};
    auto o = witness("top 2", b.graph(), f);
    auto out = eval::run(o.graph, f);
    bool plain = true;
    for (double v : xs) plain &= std::isfinite(v);
    if (plain) {
      EXPECT_EQ(out.at("second").i, out.at("second too").i);
    }
  }
}
TEST(other, a_masked_map_through_a_gather_fuses) {
  Builder b;
  auto x = b.input("x", {5});
  auto at = b.input("at", {4, 2}, Format::i32), len = b.input("len", {}, Format::i32);
  auto [t, r, e] = axes<"t r e">();
  auto y = map({r}, masked(r < Index(len()), exp(x(r))), "y");
  b.output(map({t}, max(e, -y(at(t, e)))), "out");
  const Feed f{{"x", with(u(1, {5}), {3, 4}, nan_)}, {"at", eval::indices({4, 2}, {0, 3, 2, 1, 4, 3, 2, 2})}, {"len", number(3)}};
  auto o = witness("gathered", b.graph(), f, {"fuse"});
  EXPECT_EQ(eval::run(o.graph, f).at("out").r[2], -inf);  // no live slot
}
TEST(other, combine_of_experts_with_empty_slots) {
  Builder b;
  auto x = b.input("x", {3, 2}), w = b.input("w", {4, 2});
  auto at = b.input("at", {4, 2}, Format::i32);
  auto [t, e, r, d] = axes<"t e r d">();
  auto y = map({r, d}, 2.0 * x(r, d) + to_real(iota(r)), "y");
  const Scalar slot = at(t, e);
  b.output(map({t, d}, sum(e, masked(slot >= index_literal(b, 0), y(slot, d) * w(t, e)))), "out");
  witness("experts", b.graph(), {{"x", u(1, {3, 2})}, {"at", eval::indices({4, 2}, {0, 2, 1, -1, -1, -1, 2, 2})}, {"w", u(2, {4, 2})}}, {"fuse"});
}
TEST(other, a_padded_read_of_a_ragged_map) {
  Builder b;
  auto x = b.input("x", {2, 6}), w = b.input("w", {3});
  auto len = b.input("len", {2}, Format::i32);
  auto s = axis("s", 2), i = axis("i", 4), j = axis("j", 3), n = axis("n", 6);
  auto y = map({s, n}, masked(n < Index(len(s)), relu(x(s, n)) + 1.0), "y");
  b.output(map({s, i}, sum(j, y.at_or(7.0, {s, Index(i) + j}) * w(j))), "out");
  witness("ragged", b.graph(), {{"x", u(1, {2, 6})}, {"len", ids({6, 2})}, {"w", u(2, {3})}}, {"fuse"}, {"guard_to_absence"});
}
TEST(other, a_map_read_as_an_index_stays_a_node_unless_it_is_affine) {
  Builder b;
  auto x = b.input("x", {8});
  auto table = b.input("table", {4}, Format::i32);
  auto [i] = axes<"i">();
  auto at = map({i}, min(table(i) * index_literal(b, 2), index_literal(b, 5)), "clamped");
  auto doubled = map({i}, table(i) * index_literal(b, 2), "doubled");
  b.output(map({i}, x(at(i)) + 1.0), "y");
  b.output(map({i}, x(doubled(i)) + 1.0), "z");
  auto o = witness("index", b.graph(), {{"x", u(1, {8})}, {"table", ids({0, 3, 1, 2})}}, {"reshape"});
  EXPECT_EQ(kernels(o.graph), 3);  // clamped, y, z; x[2 * table[i]] is a view
}
TEST(other, the_fill_of_a_stored_map_is_seen_by_no_reader) {
  Builder b;
  auto x = b.input("x", {4, 4});
  auto at = b.input("at", {4}, Format::i32);
  auto [i, j] = axes<"i j">();
  auto s = map({i, j}, masked(j <= i, x(i, j)), "affine support");
  b.output(map({i}, max(j, s(i, j))), "a");
  const Scalar slot = at(j);
  auto r = map({i, j}, masked(slot >= index_literal(b, 0), x(i, slot)), "data support");
  b.output(map({i}, max(j, r(i, j))), "b");
  const Feed f{{"x", filled({4, 4}, [](int64_t k) { return -1.0 - double(k); })}, {"at", ids({0, -1, 2, -1})}};
  const Graph g = b.graph();
  witness("stored", g, f);
  // Without the rule, trusting the fill is wrong where the support is data: 0 beats every negative number.
  Feed trusting = f;
  const Graph trust = stored(g, trusting);
  EXPECT_NE(unequal(eval::run(g, f).at("b"), eval::run(trust, trusting).at("b")), "");
}
TEST(other, finding_refinement_is_no_congruence) {
  Builder b;
  auto im = b.input("im", {3}), w = b.input("w", {2});
  auto y = axis("y", 3), a = axis("a", 2), z = axis("z", 1);
  const Scalar c = sum(a, im.at_or(0.0, {Index(y) + a}) * w(a));
  auto m = fold(argmax(), y, {c, iota(y)});
  b.output(map({z}, m[1] + iota(z)), "at");
  const Feed f{{"im", filled({3}, [](int64_t k) { return 3.0 - double(k); })}, {"w", eval::reals({2}, {1, inf})}};
  auto o = rewrite::optimize(b.graph());
  EXPECT_EQ(eval::run(b.graph(), f).at("at").i[0], 2);  // a NaN of 0 * inf wins
  EXPECT_EQ(eval::run(o.graph, f).at("at").i[0], 0);
}
TEST(other, absent_beats_fault_in_any_operand_order) {
  Builder b;
  auto src = b.input("src", {2});
  auto idx = b.input("idx", {3}, Format::i32);
  auto [k] = axes<"k">();
  auto z = axis("z", 1);
  const Scalar at = idx(k);
  b.output(map({z}, sum(k, src(at) + masked(at >= index_literal(b, 0), 1.0 + 0.0 * to_real(at))) + 0.0 * to_real(iota(z))), "y");
  witness("fault", b.graph(), {{"src", u(1, {2})}, {"idx", ids({1, -1, 0})}});
}
TEST(other, swap_and_factor_only_where_it_lowers_the_work) {
  for (bool causal : {false, true}) {
    Builder b;
    auto q = b.input("q", {16, 3}), k = b.input("k", {16, 3}), v = b.input("v", {16, 2});
    auto [i, j, d, c] = axes<"i j d c">();
    const Scalar s = sum(d, q(i, d) * k(j, d));
    b.output(map({i, c}, sum(j, causal ? masked(j <= i, s * v(j, c)) : s * v(j, c))), "out");
    const Feed f{{"q", u(1, {16, 3})}, {"k", u(2, {16, 3})}, {"v", u(3, {16, 2})}};
    if (causal)
      witness("causal", b.graph(), f, {}, {"swap_folds_and_factor"});
    else
      witness("full", b.graph(), f, {"swap_folds_and_factor"});
  }
}
