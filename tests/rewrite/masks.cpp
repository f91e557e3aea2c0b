// Attention masks: causal, windows, documents, unions, paged; each as `masked` or as where(.., -inf), naive against rewritten.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr const char* flash = "stabilize_softmax";
constexpr const char* guard = "guard_to_absence";
}  // namespace

TEST(masks, causal_masked) {
  Head h(5, 5, 4);
  h.feed["k"] = with(h.feed["k"], {16}, 1);
  witness("causal", h.softmax(masked(h.j <= h.i, h.dot())), h.feed, {flash});
}
TEST(masks, causal_where_minus_inf) {
  Head h(5, 5, 4);
  witness("causal where", h.softmax(where(h.j <= h.i, h.dot(), -inf)), h.feed, {guard, flash});
}
TEST(masks, nan_behind_a_mask_case_03) {
  Head h(2, 2, 4);
  const Graph g = h.softmax(masked(Index(h.j) <= Index(0), h.dot()));
  const Array x = filled({2, 4}, [](int64_t k) { return double(k); });
  h.feed = {{"q", x}, {"k", with(x, {4}, nan_)}, {"v", with(x, {5}, nan_)}};
  auto o = witness("dead NaN", g, h.feed, {flash});
  auto out = eval::run(o.graph, h.feed).at("out");
  for (int k = 0; k < 4; ++k) EXPECT_EQ(out.r[size_t(k)], k);
}
TEST(masks, bottom_right_with_empty_rows_case_10) {
  Head h(6, 2, 4);
  auto o = witness("bottom right", h.softmax(masked(h.j <= Index(h.i) - Index(4), h.dot())), h.feed, {flash});
  auto out = eval::run(o.graph, h.feed).at("out");
  EXPECT_EQ(out.r[0], 0);
  EXPECT_EQ(out.r[12], 0);
  EXPECT_NEAR(out.r[16], 0.141120008060, 1e-11);
  EXPECT_NEAR(out.r[20], 0.018027316847, 1e-11);
}
TEST(masks, bottom_right_where_refines_nan_to_zero) {
  Head h(6, 2, 4);
  const Graph g = h.softmax(where(h.j <= Index(h.i) - Index(4), h.dot(), -inf));
  auto o = witness("bottom right where", g, h.feed, {guard, flash});
  EXPECT_TRUE(std::isnan(eval::run(g, h.feed).at("out").r[0]));
  EXPECT_EQ(eval::run(o.graph, h.feed).at("out").r[0], 0);
}
TEST(masks, window) {
  Head h(7, 7, 4);
  witness("window 3", h.softmax(masked(h.j <= h.i && h.j >= Index(h.i) - Index(2), h.dot())), h.feed, {flash});
}
TEST(masks, window_and_sinks_is_two_pieces) {
  Head h(9, 9, 4);
  const Guard g = (h.j <= h.i && h.j >= Index(h.i) - Index(2)) || (h.j <= h.i && Index(h.j) <= Index(1));
  auto o = witness("window + sinks", h.softmax(masked(g, h.dot())), h.feed, {flash});
  EXPECT_EQ(disjoint(fold_with(o.graph, 3)->domain).size(), 2u);
}
TEST(masks, prefix_lm) {
  for (bool as_where : {false, true}) {
    Head h(6, 6, 4);
    const Guard g = h.j <= h.i || Index(h.j) <= Index(2);
    if (as_where)
      witness("prefix where", h.softmax(where(g, h.dot(), -inf)), h.feed, {guard, flash});
    else
      witness("prefix", h.softmax(masked(g, h.dot())), h.feed, {flash});
  }
}
TEST(masks, documents_by_uniforms_one_of_them_empty) {
  Head h(6, 6, 4);
  auto start = h.b.input("start", {6}, Format::i32), end = h.b.input("end", {6}, Format::i32);
  h.feed["start"] = ids({0, 0, 2, 2, 2, 5});
  h.feed["end"] = ids({2, 2, 5, 5, 5, 5});
  witness("documents", h.softmax(masked(h.j >= Index(start(h.i)) && h.j < Index(end(h.i)), h.dot())), h.feed, {flash});
}
TEST(masks, documents_by_equality_leave_a_predicate) {
  Head h(6, 6, 4);
  auto doc = h.b.input("doc", {6}, Format::i32);
  h.feed["doc"] = ids({0, 0, 1, 1, 1, 2});
  h.feed["v"] = with(h.feed["v"], {20, 21}, nan_);
  witness("documents ==", h.softmax(masked(doc(h.i) == doc(h.j), masked(h.j <= h.i, h.dot()))), h.feed, {flash});
}
TEST(masks, boolean_mask_with_a_dead_row_case_01) {
  Head h(5, 5, 4);
  auto mask = h.b.input("mask", {5}, Format::i32);
  h.feed["mask"] = ids({1, 1, 0, 1, 1});
  auto o = witness("dead row", h.softmax(masked(index_literal(h.b, 0) < mask(h.i), masked(h.j <= h.i, h.dot()))), h.feed, {flash});
  auto out = eval::run(o.graph, h.feed).at("out");
  EXPECT_NEAR(out.r[0], 0.141120008060, 1e-11);
  EXPECT_EQ(out.r[8], 0);
  EXPECT_NEAR(out.r[19], -0.107711134042, 1e-11);
}
TEST(masks, append_to_a_cache_at_a_runtime_position) {
  Head h(5, 5, 4);
  auto pos = h.b.input("pos", {}, Format::i32), fresh = h.b.input("fresh", {4});
  h.feed["pos"] = number(3);
  h.feed["fresh"] = u(9, {4});
  h.feed["k"] = with(h.feed["k"], {12, 13, 14, 15, 16, 17}, nan_);
  const Scalar key = select(iota(h.j) == pos(), fresh(h.d), h.k(h.j, h.d));
  const Scalar dot = sum(h.d, h.q(h.i, h.d) * key);
  witness("append", h.softmax(masked(h.j <= Index(pos()), dot)), h.feed, {flash});
}
TEST(masks, chunked_axes_with_a_ragged_tail) {
  Builder b;
  auto io = axis("io", 3), ii = axis("ii", 3), jo = axis("jo", 3), ji = axis("ji", 3);
  auto [d, c] = axes<"d c">();
  auto q = b.input("q", {8, 4}), k = b.input("k", {8, 4}), v = b.input("v", {8, 2});
  const Index qi = 3 * Index(io) + Index(ii), kj = 3 * Index(jo) + Index(ji);
  const Scalar dot = sum(d, q.at_or(0.0, {qi, d}) * k.at_or(0.0, {kj, d}));
  const Guard g = io == jo && kj <= qi && kj <= Index(7) && qi <= Index(7);
  const Scalar score = masked(g, dot), top = max({jo, ji}, score), e = exp(score - top);
  b.output(map({io, ii, c}, ratio(sum({jo, ji}, e * v.at_or(0.0, {kj, c})), sum({jo, ji}, e))), "out");
  const Feed feed{{"q", u(1, {8, 4})}, {"k", u(2, {8, 4})}, {"v", u(3, {8, 2})}};
  auto o = witness("chunked", b.graph(), feed, {flash});
  auto out = eval::run(o.graph, feed).at("out");
  EXPECT_EQ(out.r[16], 0);  // a point of the split axis that the flat one lacks
  // The same by flat axes and a residual predicate on chunk numbers.
  Head h(8, 8, 4, 2);
  auto chunk = h.b.input("chunk", {8}, Format::i32);
  h.feed["chunk"] = ids({0, 0, 0, 1, 1, 1, 2, 2});
  const Graph flat = h.softmax(masked(chunk(h.i) == chunk(h.j), masked(h.j <= h.i, 2.0 * h.dot())));
  auto want = eval::run(flat, h.feed).at("out");
  for (size_t p = 0; p < 16; ++p) EXPECT_NEAR(out.r[p], want.r[p], 1e-12);
}
TEST(masks, three_unions_exceed_the_cap_and_leave_a_predicate) {
  Head h(6, 6, 4);
  const Guard a = h.j <= h.i || Index(h.j) >= Index(3) || Index(h.i) >= Index(4);
  const Guard b = h.j >= h.i || Index(h.j) >= Index(3) || Index(h.i) >= Index(2);
  const Guard c = Index(h.j) <= Index(4) || Index(h.i) <= Index(1);
  auto o = witness("unions", h.softmax(masked(a, masked(b, masked(c, h.dot())))), h.feed, {flash});
  bool residual = false;
  for (auto& n : o.graph.nodes)
    if (auto* x = n.comp()) {
      EXPECT_LE(disjoint(x->domain).size(), most_pieces);
      for (Id l : x->lift) residual |= o.graph.pool[l].op == Op::only;
    }
  EXPECT_TRUE(residual);
}
TEST(masks, a_document_end_read_at_the_fold_axis) {
  Head h(6, 6, 4);
  auto end = h.b.input("end", {6}, Format::i32);
  h.feed["end"] = ids({2, 2, 5, 5, 5, 6});
  witness("end[j]", h.softmax(masked(h.j <= h.i && h.i < Index(end(h.j)), h.dot())), h.feed, {flash});
}
TEST(masks, a_data_mask_by_where) {
  Head h(5, 5, 4);
  auto mask = h.b.input("mask", {5, 5}, Format::i32);
  h.feed["mask"] = eval::indices({5, 5}, {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1});
  witness("data mask", h.softmax(where(index_literal(h.b, 0) < mask(h.i, h.j), h.dot(), -inf)), h.feed, {guard, flash});
}
TEST(masks, absence_in_one_branch_of_a_select) {
  Builder b;
  auto x = b.input("x", {4});
  auto i = axis("i", 4);
  auto [j] = axes<"j">();
  b.output(map({i}, sum(j, select(0.0 < x(j), masked(j <= i, x(j)), 1.0))), "y");
  witness("one branch", b.graph(), {{"x", u(1, {4})}});
}
TEST(masks, no_keys_and_no_value_columns) {
  {
    Head h(4, 0, 4);
    witness("no keys", h.softmax(h.dot()), h.feed, {flash});
  }
  Head h(4, 4, 4, 0);
  const Graph g = h.softmax(h.dot());
  auto o = witness("no columns", g, h.feed, {flash});
  for (NodeId id = 0; id < o.graph.nodes.size(); ++id)
    if (auto* c = o.graph[id].comp(); c && c->monoid && c->lift.size() == 3) {
      eval::Oracle run(o.graph, h.feed);
      for (uint32_t p = 0; p < 3; ++p)
        if (o.graph.shape({id, p}).size() == 1) {
          EXPECT_EQ(run.port({id, p}).size(), 4);
        }
    }
}
TEST(masks, grouped_queries_by_two_dimensions) {
  Builder b;
  auto [g, r, i, j, d, c] = axes<"g r i j d c">();
  auto q = b.input("q", {2, 3, 4, 2}), k = b.input("k", {2, 4, 2}), v = b.input("v", {2, 4, 2});
  const Scalar score = masked(j <= i, sum(d, q(g, r, i, d) * k(g, j, d))), top = max(j, score), e = exp(score - top);
  b.output(map({g, r, i, c}, ratio(sum(j, e * v(g, j, c)), sum(j, e))), "out");
  witness("GQA", b.graph(), {{"q", u(1, {2, 3, 4, 2})}, {"k", u(2, {2, 4, 2})}, {"v", u(3, {2, 4, 2})}}, {flash});
}
TEST(masks, paged_keys_with_a_missing_page) {
  Builder b;
  auto p = axis("p", 3), o = axis("o", 2);
  auto [i, d, c] = axes<"i d c">();
  auto q = b.input("q", {3, 2}), kp = b.input("kpool", {4, 2, 2}), vp = b.input("vpool", {4, 2, 2});
  auto table = b.input("table", {3}, Format::i32), len = b.input("len", {}, Format::i32);
  const Scalar slot = table(p), hit = slot >= index_literal(b, 0);
  const Scalar dot = sum(d, q(i, d) * masked(hit, kp(slot, o, d)));
  const Scalar score = masked(2 * Index(p) + Index(o) < Index(len()), masked(hit, dot));
  const Scalar top = max({p, o}, score), e = exp(score - top);
  b.output(map({i, c}, ratio(sum({p, o}, e * vp(slot, o, c)), sum({p, o}, e))), "out");
  Feed f{{"q", u(1, {3, 2})},
         {"kpool", with(u(2, {4, 2, 2}), {0, 1, 2, 3}, nan_)},
         {"vpool", with(u(3, {4, 2, 2}), {0, 1, 2, 3}, nan_)},
         {"table", ids({3, -1, 1})},
         {"len", number(5)}};
  const Graph g = b.graph();
  witness("paged", g, f, {flash});
  f["len"] = number(0);
  witness("paged, length 0", g, f, {flash});
}
