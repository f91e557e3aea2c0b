// Score changes: soft caps, biases, gathered tables, sigmoid attention, dead and tied rows.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr const char* flash = "stabilize_softmax";
constexpr const char* guard = "guard_to_absence";
}  // namespace

TEST(scores, soft_cap_then_mask) {
  Head h(5, 5, 4);
  witness("cap, mask", h.softmax(masked(h.j <= h.i, 5.0 * tanh(0.2 * h.dot()))), h.feed, {flash});
}
TEST(scores, soft_cap_after_where_keeps_the_guard) {
  Head h(5, 5, 4);
  witness("where, cap", h.softmax(5.0 * tanh(0.2 * where(h.j <= h.i, h.dot(), -inf))), h.feed, {flash}, {guard});
}
TEST(scores, the_smallest_number_is_no_identity_case_04) {
  Head h(5, 5, 4);
  witness("finfo.min", h.softmax(where(h.j <= h.i, h.dot(), -3.4028235e38)), h.feed, {flash}, {guard});
}
TEST(scores, a_bias_outside_where) {
  Head h(5, 5, 4);
  auto slope = h.b.input("slope", {});
  h.feed["slope"] = filled({}, [](int64_t) { return 0.3; });
  const Scalar bias = slope() * to_real(iota(Index(h.j) - Index(h.i)));
  witness("ALiBi", h.softmax(where(h.j <= h.i, h.dot(), -inf) + bias), h.feed, {guard, flash});
}
TEST(scores, minus_inf_times_an_unknown_sign_stays) {
  Head h(5, 5, 4);
  auto scale = h.b.input("scale", {});
  h.feed["scale"] = filled({}, [](int64_t) { return -0.3; });
  witness("scale", h.softmax(scale() * where(h.j <= h.i, h.dot(), -inf)), h.feed, {}, {guard});
}
TEST(scores, minus_inf_times_a_positive_scale_leaves) {
  Head h(5, 5, 4);
  auto scale = h.b.input("scale", {});
  h.feed["scale"] = filled({}, [](int64_t) { return -0.3; });
  witness("exp scale", h.softmax(exp(scale()) * where(h.j <= h.i, h.dot(), -inf)), h.feed, {guard});
}
TEST(scores, a_table_gathered_by_bucket) {
  Head h(5, 5, 4);
  auto bucket = h.b.input("bucket", {9}, Format::i32), table = h.b.input("table", {3});
  h.feed["bucket"] = ids({0, 0, 1, 1, 2, 2, 1, 0, 0});
  h.feed["table"] = u(5, {3});
  const Scalar bias = table(bucket(Index(h.j) - Index(h.i) + Index(4)));
  witness("T5", h.softmax(masked(h.j <= h.i, h.dot() + bias)), h.feed, {flash});
}
TEST(scores, sigmoid_attention_by_where) {
  Head h(5, 5, 4);
  const Scalar weight = sigmoid(where(h.j <= h.i, h.dot(), -inf));
  h.b.output(map({h.i, h.c}, sum(h.j, weight * h.v(h.j, h.c))), "out");
  witness("sigmoid", h.b.graph(), h.feed);
}
TEST(scores, live_minus_inf) {
  Head h(5, 5, 4);
  h.feed["q"] = filled({5, 4}, [](int64_t) { return 1.0; });
  h.feed["k"] = with(h.feed["k"], {0, 8, 16}, -inf);
  witness("live -inf", h.softmax(masked(h.j <= h.i, h.dot())), h.feed, {flash});
}
TEST(scores, all_tie) {
  Head h(5, 5, 4);
  h.feed["q"] = filled({5, 4}, [](int64_t) { return 0.0; });
  witness("ties", h.softmax(h.dot()), h.feed, {flash});
}
TEST(scores, a_max_over_another_domain_is_refused_with_that_reason) {
  Head h(5, 5, 4);
  const Scalar top = max(h.j, h.dot()), e = exp(masked(h.j <= h.i, h.dot()) - top);
  h.b.output(map({h.i, h.c}, ratio(sum(h.j, e * h.v(h.j, h.c)), sum(h.j, e))), "out");
  auto o = witness("other domain", h.b.graph(), h.feed, {}, {flash});
  EXPECT_EQ(o.trace.refused.at(flash), "another domain");
}
TEST(scores, normalised_probabilities_times_values_with_empty_rows) {
  Head h(5, 5, 4);
  const Scalar s = masked(h.j <= Index(h.i) - Index(2), h.dot()), e = exp(s - max(h.j, s)), l = sum(h.j, e);
  auto p = map({h.i, h.j}, e / l, "P");
  h.b.output(map({h.i, h.c}, sum(h.j, p(h.i, h.j) * h.v(h.j, h.c))), "out");
  witness("softmax @ V", h.b.graph(), h.feed, {"fuse", "hoist", flash});
}
TEST(scores, a_temperature_other_than_e_is_a_scale_of_the_same_fold) {
  Head h(5, 5, 4);
  const Scalar s = masked(h.j <= h.i, h.dot()), e = exp2((s - max(h.j, s)) * 0.25);
  h.b.output(map({h.i, h.c}, ratio(sum(h.j, e * h.v(h.j, h.c)), sum(h.j, e))), "out");
  witness("base 2", h.b.graph(), h.feed, {flash});
}
TEST(scores, a_falling_exponential_of_a_max_is_refused) {
  Head h(5, 5, 4);
  const Scalar s = h.dot(), e = exp(max(h.j, s) - s);
  h.b.output(map({h.i}, sum(h.j, e)), "out");
  witness("grows", h.b.graph(), h.feed, {}, {flash});
}
TEST(scores, a_soft_minimum_is_the_same_rule) {
  Head h(5, 5, 4);
  const Scalar s = masked(h.j <= h.i, h.dot()), e = exp(min(h.j, s) - s);
  h.b.output(map({h.i, h.c}, ratio(sum(h.j, e * h.v(h.j, h.c)), sum(h.j, e))), "out");
  witness("softmin", h.b.graph(), h.feed, {flash});
}
TEST(scores, finding_a_fold_hides_absence) {
  // Masked inside the dot: the score of a padded key is 0, not absent. Right by definition; the builder warns.
  Head h(4, 4, 2);
  auto kr = map({h.j, h.d}, masked(Index(h.j) <= Index(2), h.k(h.j, h.d) + to_real(iota(h.j))), "kr");
  const Scalar dot = sum(h.d, h.q(h.i, h.d) * kr(h.j, h.d));
  h.feed["k"] = with(h.feed["k"], {6, 7}, nan_);
  witness("hidden", h.softmax(dot), h.feed, {"fuse", flash});
}
