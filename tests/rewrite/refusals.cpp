// Where a rule must not fire, or must keep an absence: each case killed a wrong version of a rule.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// The readers of maps forget that their reads may be absent: what a builder writes into their domains is taken out.
Graph without_fold_domains(const Graph& g) {
  return rewrite::change_each(g, [](rewrite::Edit&, NodeId, Comp& n) -> std::optional<std::string> {
           if (n.monoid) n.domain = everywhere();
           return {};
         }).graph;
}
}  // namespace

TEST(refusals, a_divisor_that_is_no_sum_of_positive_terms_stays) {
  Builder b;
  auto y = b.input("y", {3, 3}), v = b.input("v", {3});
  auto [i, j] = axes<"i j">();
  const Scalar l = sum(j, masked(j <= i, y(i, j)));
  b.output(map({i}, sum(j, masked(j <= i, v(j) * recip(l)))), "out");
  // Row 1 sums to 0: v / 0 is inf, and ratio would say 0.
  witness("zero divisor", b.graph(), {{"y", eval::reals({3, 3}, {1, 0, 0, 1, -1, 0, 1, 1, 1})}, {"v", eval::reals({3}, {1, 1, 1})}}, {}, {"hoist"});
}
TEST(refusals, a_map_spliced_into_a_reader_without_its_domain_stays_absent_there) {
  Builder b;
  auto x = b.input("x", {4, 4});
  auto [i, j] = axes<"i j">();
  auto s = map({i, j}, masked(j <= i, x(i, j) - 1.0), "S");
  b.output(map({i}, max(j, s(i, j))), "top");
  const Graph g = without_fold_domains(b.graph());
  witness("no domain", g, {{"x", filled({4, 4}, [](int64_t k) { return double(k) - 100.0; })}}, {"fuse"});
}
TEST(refusals, normalise_needs_a_live_term) {
  // Row 0 has no key: l = 0 there, ratio gives 0, and exp2(A - log2 0) would be inf.
  Builder b;
  auto s = b.input("s", {4, 4});
  auto [i, j] = axes<"i j">();
  const Scalar masked_s = masked(j <= Index(i) - Index(1), s(i, j)), m = max(j, masked_s), l = sum(j, exp(masked_s - m));
  b.output(map({j}, sum(i, ratio(exp(s(i, j) - m), l))), "t");
  witness("not live", b.graph(), {{"s", u(1, {4, 4})}}, {}, {"normalise"});
}
TEST(refusals, normalise_of_a_ratio_needs_a_term_above_zero) {
  // Row 1 has live keys, all of which weigh exp(-inf) = 0: ratio gives 0, and exp2(-inf - log2 0) would be NaN.
  for (bool divides : {false, true}) {
    Builder b;
    auto s = b.input("s", {3, 4}), u0 = b.input("u", {3, 2});
    auto [i, j, c] = axes<"i j c">();
    const Scalar weight = exp(select(s(i, j) > 0.0, s(i, j), -inf)), l = sum(j, weight);
    b.output(map({j, c}, sum(i, (divides ? weight / l : ratio(weight, l)) * u0(i, c))), "t");
    const Feed feed{{"s", eval::reals({3, 4}, {1, -1, 2, 3, -1, -2, -3, -4, -1, 1, -1, 2})}, {"u", u(2, {3, 2})}};
    // A quotient is NaN there as written, so it may become anything.
    if (divides) witness("quotient", b.graph(), feed, {"normalise"});
    else witness("ratio", b.graph(), feed, {}, {"normalise"});
  }
}
TEST(refusals, normalise_asks_for_the_max_of_the_very_terms) {
  // The max is over other keys than the sum, so no term of the sum need be exp(0).
  Builder b;
  auto s = b.input("s", {4, 4}), u0 = b.input("u", {4, 2});
  auto [i, j, c] = axes<"i j c">();
  const Scalar score = select(s(i, j) > 0.0, s(i, j), -inf), weight = exp(masked(j <= i, score) - max(j, score));
  b.output(map({j, c}, sum(i, ratio(weight, sum(j, weight)) * u0(i, c))), "t");
  const Feed feed{{"s", eval::reals({4, 4}, {-1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, 2, 1, 2, 3, 4})}, {"u", u(2, {4, 2})}};
  witness("another max", b.graph(), feed, {}, {"normalise"});
}
TEST(refusals, normalise_takes_scores_of_minus_infinity_under_their_own_max) {
  Builder b;
  auto s = b.input("s", {4, 4}), u0 = b.input("u", {4, 2});
  auto [i, j, c] = axes<"i j c">();
  const Scalar score = masked(j <= i, select(s(i, j) > 0.0, s(i, j), -inf)), top = max(j, score);
  const Scalar weight = exp(masked(top > -inf, score - top));
  b.output(map({j, c}, sum(i, ratio(weight, sum(j, weight)) * u0(i, c))), "t");
  const Feed feed{{"s", eval::reals({4, 4}, {-1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, 2, 1, 2, 3, 4})}, {"u", u(2, {4, 2})}};
  witness("own max", b.graph(), feed, {"normalise"});
}
TEST(refusals, siblings_with_other_domains_stay_apart) {
  Builder b;
  auto x = b.input("x", {4, 4});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, masked(j <= i, x(i, j))) * max(j, x(i, j))), "y");
  witness("other domains", b.graph(), {{"x", u(1, {4, 4})}}, {}, {"merge_siblings"});
}
TEST(refusals, a_one_term_fold_under_a_term_that_is_not_the_identity_stays) {
  Builder b;
  auto x = b.input("x", {5, 4}), w = b.input("w", {4, 3});
  auto [i, j, c] = axes<"i j c">();
  auto a = sum(Over(std::vector<Axis>{}), masked(j <= i, x(i, j)));
  b.output(map({i, c}, sum(j, (a + 1.0) * w(j, c))), "y");
  witness("one term", b.graph(), {{"x", u(1, {5, 4})}, {"w", u(2, {4, 3})}}, {}, {"one_term_splice"});
}
