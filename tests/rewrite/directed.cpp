// Directed rules: supports exposed, folds split, absorbing folds in definition form, reshapes as views.
#include "tang/ir/recurrence.hpp"
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

TEST(directed, expose_support_is_idempotent) {
  const Graph g = rewrite::expose_support_rule().witness();
  const Graph once = rewrite::expose_support(g), twice = rewrite::expose_support(once);
  EXPECT_EQ(ir::hash(canonical(once).graph), ir::hash(canonical(twice).graph));
}
TEST(directed, split_kv_of_a_decoding_fold) {
  Head h(2, 40, 8, 8);
  auto len = h.b.input("len", {}, Format::i32);
  const Graph g = h.softmax(masked(h.j < Index(len()), h.dot()));
  auto o = rewrite::optimize(g);
  const NodeId fold = [&] {
    for (NodeId id = 0; id < o.graph.nodes.size(); ++id)
      if (auto* c = o.graph[id].comp(); c && c->monoid && c->lift.size() == 3) return id;
    return NodeId(0);
  }();
  for (int64_t block : {16, 7, 40, 1, 64}) {
    auto s = rewrite::split_fold(o.graph, fold, 0, block);
    ASSERT_TRUE(bool(s)) << s.why();
    for (int64_t length : {0, 1, 16, 33, 40}) {
      h.feed["len"] = number(length);
      expect_refines(g, s->graph, h.feed, "split-KV");
      Graph again = rewrite::optimize(s->graph).graph;  // normal rules leave the parts apart
      expect_refines(g, again, h.feed, "split-KV, rewritten");
    }
  }
}
TEST(directed, split_refuses_what_it_may_not_do) {
  Builder b;
  auto x = b.input("x", {4, 6}), y = b.input("y", {4, 6});
  auto [i, j] = axes<"i j">();
  MonoidSpec affine{"affine", {expr::real(1), expr::real(0)}, [](Pool&, const std::vector<expr::E>& l, const std::vector<expr::E>& r) {
                      expr::E a = l[0] * r[0], c = l[1] * r[0], s = c + r[1];
                      return std::vector<expr::E>{a, s};
                    }, false};
  auto s = fold(affine, {i, j}, {x(i, j), y(i, j)});
  auto z = axis("z", 1);
  b.output(map({z}, s[1] + 0.0 * to_real(iota(z))), "second");
  const Graph g = b.graph();
  NodeId fold = 0;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp(); c && c->monoid) fold = id;
  EXPECT_TRUE(bool(rewrite::split_fold(g, fold, 0, 3)));   // the outer axis keeps the order
  EXPECT_FALSE(bool(rewrite::split_fold(g, fold, 1, 3)));  // the inner one does not
  EXPECT_FALSE(bool(rewrite::split_fold(g, g.outputs[0].port.node, 0, 3)));
  EXPECT_FALSE(bool(rewrite::split_fold(g, fold, 2, 3)));
  const Feed f{{"x", filled({4, 6}, [](int64_t k) { return 0.5 + 0.01 * double(k); })}, {"y", u(2, {4, 6})}};
  auto out = rewrite::split_fold(g, fold, 0, 3);
  eval::Options seq;
  EXPECT_EQ(unequal(eval::run(g, f, seq).at("second"), eval::run(out->graph, f, seq).at("second")), "");
}
TEST(directed, a_symbolic_axis_is_split_by_blocks) {
  Builder b;
  Extent n = b.symbol("n", {1, 1000, 1});
  auto x = b.input("x", {n, 3});
  auto [i, j] = axes<"i j">();
  b.output(map({j}, sum(i, x(i, j))), "y");
  auto o = rewrite::optimize(b.graph());
  EXPECT_FALSE(bool(rewrite::split_fold_in(o.graph, o.graph.outputs[0].port.node, 0, 4)));
  auto s = rewrite::split_fold(o.graph, o.graph.outputs[0].port.node, 0, 16);
  ASSERT_TRUE(bool(s)) << s.why();
  for (int64_t size : {1, 16, 37}) {
    const Feed f{{"x", u(1, {size, 3})}};
    expect_refines(bind(b.graph(), {{"n", size}}).graph, bind(s->graph, {{"n", size}}).graph, f, "symbolic");
  }
}
TEST(directed, definition_form_undoes_stabilize_and_stabilize_redoes_it) {
  Head h(6, 6, 4, 3);
  const Graph g = h.softmax(masked(h.j <= h.i, h.dot()));
  auto o = rewrite::optimize(g);
  ASSERT_TRUE(fold_with(o.graph, 3));
  const Graph formed = rewrite::definition_form(o.graph);
  EXPECT_FALSE(fold_with(formed, 3));
  int maps = 0, folds = 0;
  for (auto& n : canonical(formed).graph.nodes)
    if (auto* c = n.comp()) (c->is_map() ? maps : folds) += 1;
  EXPECT_EQ(maps, 3);   // score, one weight shared by both sums, the output
  EXPECT_EQ(folds, 4);  // q k, max, l, o
  expect_refines(g, formed, h.feed, "definition form");
}
TEST(directed, a_component_that_reads_a_partial_map_has_no_term_in_definition_form_either) {
  Builder b;
  auto s = b.input("s", {5}), x = b.input("x", {4, 3});
  auto [i, c, j] = axes<"i c j">();
  const Tensor part = map({i, c}, masked(c <= i, x(i, c)), "part");
  auto state = fold(online_softmax(2), j, {s(j), part(i, c), 3.0});
  b.output(map({i, c}, state[2]), "threes");
  b.output(map({i, c}, state[1]), "parts");
  const Feed f{{"s", u(1, {5})}, {"x", u(2, {4, 3})}};
  expect_refines(b.graph(), rewrite::definition_form(b.graph()), f, "definition form");
  const auto formed = rewrite::definition_form_rule().apply(b.graph());
  if (formed) expect_refines(b.graph(), formed->graph, f, "its rule");
}
TEST(directed, merged_heads_are_a_view_and_their_axis_is_split) {
  const Graph g = rewrite::reshape().witness();
  auto o = rewrite::optimize(g);
  EXPECT_EQ(kernels(o.graph), 2) << rewrite::explain(o.trace);
  for (auto& n : o.graph.nodes)
    if (auto* c = n.comp(); c && c->monoid) {
      EXPECT_EQ(c->folds.size(), 2u);
    }
  const Feed f{{"x", u(1, {3, 2, 4})}, {"w", u(2, {8, 5})}, {"y", u(3, {8})}};
  witness("reshape", g, f, {"reshape"});
}
TEST(directed, pages_by_division_are_affine_after_a_split) {
  // k[page[s / 4] * 4 + s % 4]: the axis splits in (page, slot).
  Builder b;
  auto pool = b.input("pool", {32}), w = b.input("w", {16});
  auto page = b.input("page", {4}, Format::i32);
  auto s = axis("s", 16);
  const Scalar four = index_literal(b, 4), at = page(iota(s) / four) * four + iota(s) % four;
  b.output(map(std::vector<Axis>{}, sum(s, pool(at) * w(s))), "y");
  const Feed f{{"pool", u(1, {32})}, {"w", u(2, {16})}, {"page", ids({3, 0, 7, 2})}};
  auto o = witness("pages", b.graph(), f, {"reshape"});
  for (auto& n : o.graph.nodes)
    if (auto* c = n.comp(); c && c->monoid) {
      EXPECT_EQ(c->folds, (std::vector<Extent>{4, 4}));
    }
  EXPECT_EQ(kernels(o.graph), 1) << rewrite::explain(o.trace);
}
TEST(directed, explain_prints_rules_and_laws) {
  Head h(64, 64, 16, 16);
  const std::string text = rewrite::explain(rewrite::optimize(h.stored_softmax(masked(h.j <= h.i, h.dot()))).trace);
  for (const char* part : {"fuse", "hoist_ratio", "stabilize_softmax", "absorbing_chunked", "kernels:", "no longer stored:", "P[64,64]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// A recurrence whose emits exist in live steps only emits where they exist, once.
TEST(directed, expose_support_of_a_recurrence_is_idempotent) {
  Builder b;
  Tensor x = b.input("x", {5, 3}), h = b.input("h", {3});
  Axis t = axis("t", 5), i = axis("i", 3);
  const Recurred r = recur(
      t, {carried("s", h)},
      [&](const std::vector<Tensor>& old) -> Step {
        Tensor next = map({i}, old[0](i) + x(t, i));
        return {{next}, {next}};
      },
      {false, Index(t) >= Index(1)});
  Axis k = axis("k", 5), j = axis("j", 3);
  b.output(map({k, j}, or_else(r.emits[0](k, j), 7)), "y");
  const Graph once = rewrite::expose_support(b.graph()), twice = rewrite::expose_support(once);
  EXPECT_NE(ir::hash(canonical(once).graph), ir::hash(b.graph()));
  EXPECT_EQ(ir::hash(canonical(once).graph), ir::hash(canonical(twice).graph));
}
