// The plan of attention and its backward in fixed numbers: one group, one evaluation of each score a tile, no array of
// (query, key); and the choice between one group and two by counted cost.
#include "backward/attention.hpp"
#include "lower/pipeline.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::test;
using plan::Flush;
using plan::Plan;

namespace {
Plan planned(const ir::Graph& g, const schedule::Schedule& s = {}, const target::Target& t = target::c_target(16, 1)) {
  return plan::make_plan(rewrite::for_planning(rewrite::optimize(g).graph, t.sum_cost > 0), s, t);
}
int64_t largest(const Plan& p) {
  int64_t most = 0;
  for (auto& b : p.buffers) most = std::max(most, eval::volume(b.shape));
  return most;
}
struct Flushes {
  int store = 0, added = 0;
};
// Of the only group with several members.
Flushes joint(const Plan& p, size_t shared) {
  Flushes f;
  for (auto& s : p.steps)
    if (s.group.members.size() > 1) {
      EXPECT_EQ(s.group.shared.size(), shared) << plan::print(p);
      EXPECT_EQ(f.store + f.added, 0) << "a second group\n" << plan::print(p);
      for (auto& m : s.group.members) ++(m.flush == Flush::store ? f.store : f.added);
    }
  return f;
}
} // namespace

// Three steps: the forward, delta, and one group of dq, dk and dv over S and dP. Words of 4 bytes, a = heads x n x d: the
// forward reads q, k, v, do and writes o, o before it is divided, do / sum, and a max and a sum a row; delta reads do, that
// o and the sum; the group reads q, k, v, do / sum, the max and delta and writes dq, dk, dv: (7a + 2hn) + (2a + 2hn) +
// (7a + 2hn) = 16 a + 6 h n words.
TEST(backward, every_variant_is_one_group_and_moves_no_scores) {
  for (int64_t d : {64, 128})
    for (auto z : {AttentionSize{}, AttentionSize{.causal = true}, AttentionSize{.causal = true, .window = 100}, AttentionSize{.causal = true, .cap = 20},
                   AttentionSize{.causal = true, .alibi = true}, AttentionSize{.causal = true, .distances = 600}}) {
      z.heads = 2, z.rows = z.keys = 600, z.d = z.c = d;
      const Plan p = planned(attention_with_backward(z));
      EXPECT_EQ(p.steps.size(), 3u) << plan::print(p);
      const Flushes f = joint(p, 2);
      EXPECT_EQ(f.store, 2);
      EXPECT_EQ(f.added, z.alibi || z.distances ? 2 : 1);
      const int64_t a = 2 * 600 * d, rows = 2 * 600;
      EXPECT_EQ(largest(p), a) << plan::print(p);
      // Slopes, or a table of 2 x 600 + 1 distances, are read twice and their gradient is written.
      const int64_t more = z.alibi ? 3 * 2 : z.distances ? 3 * (2 * 600 + 1) : 0;
      EXPECT_EQ(p.bytes_moved(), 4 * (16 * a + 6 * rows + more)) << plan::print(p);
    }
}

// Grouped queries: q, o, do and dq have r = 4 times the words of k, v, dk and dv. Adding to dk and dv (2 a words a block of
// rows) is less than to dq (4 a words a block of keys).
TEST(backward, grouped_queries_add_to_the_keys) {
  const Plan p = planned(attention_with_backward({.heads = 2, .group = 4, .rows = 600, .keys = 600, .d = 64, .c = 64, .causal = true}));
  EXPECT_EQ(p.steps.size(), 3u);
  const Flushes f = joint(p, 2);
  EXPECT_EQ(f.store, 1);
  EXPECT_EQ(f.added, 2);
  const int64_t keys = 2 * 600 * 64, queries = 4 * keys, rows = 8 * 600;
  EXPECT_EQ(p.bytes_moved(), 4 * ((5 * queries + 2 * keys + 2 * rows) + (2 * queries + 2 * rows) + (3 * queries + 4 * keys + 2 * rows)));
}

// A field forces either way, and a target that stores each result once takes two groups.
TEST(backward, one_group_or_two_is_a_field_and_a_target) {
  const ir::Graph g = attention_with_backward({.heads = 2, .rows = 300, .keys = 300, .d = 64, .c = 64, .causal = true});
  EXPECT_EQ(planned(g).steps.size(), 3u);
  const Plan gpu = planned(g, {}, target::cuda_target());
  EXPECT_EQ(gpu.steps.size(), 4u) << plan::print(gpu);
  for (auto& s : gpu.steps)
    for (auto& m : s.group.members) EXPECT_EQ(m.flush, Flush::store) << plan::print(gpu);
  schedule::Schedule apart, together;
  for (auto name : {"dq", "dk", "dv"}) {
    apart.groups[name].joint = false;
    together.groups[name].joint = true;
  }
  EXPECT_EQ(planned(g, apart).steps.size(), 4u);
  EXPECT_EQ(planned(g, together, target::cuda_target()).steps.size(), 3u);
}

// rows[i, c] = sum_j f(s) w(j, c) and columns[j, c] = sum_i f(s) w(i, c) with s a contraction over d. Joined, one of them is
// added to: c / 64 words a (i, j), at 16 multiply-adds a word c / 4. Apart, s costs d more and
// f(s) w two operations: with c = 512 they part at d = 3 (128 > 5) and join at d = 200 (128 <= 202).
TEST(backward, scores_that_are_cheap_are_evaluated_again) {
  for (int64_t d : {3, 200}) {
    ir::Builder b;
    ir::Tensor q = b.input("q", {640, d}), k = b.input("k", {640, d}), w = b.input("w", {640, 512});
    auto [i, j, x, c] = ir::axes<"i j x c">();
    const ir::Scalar s = relu(sum(x, q(i, x) * k(j, x)));
    b.output(map({i, c}, sum(j, s * w(j, c))), "rows");
    b.output(map({j, c}, sum(i, s * w(i, c))), "columns");
    EXPECT_EQ(planned(b.graph()).steps.size(), d == 3 ? 2u : 1u) << plan::print(planned(b.graph()));
  }
}

// y = relu(x w1) w2: {dw1, dw2, dx} over h = x w1 and dh = dy w2. Members 3, subterms 2; nothing of (rows, hidden) is stored.
TEST(backward, of_two_layers_is_one_group) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {500, 48}), w1 = b.param("w1", {48, 700}), w2 = b.param("w2", {700, 40}), dy = b.input("dy", {500, 40});
  auto [t, e, f, o, u] = ir::axes<"t e f o u">();
  const ir::Scalar h = sum(u, x(t, u) * w1(u, f)), dh = sum(o, dy(t, o) * w2(f, o)), gate = select(h > 0, dh, 0 * dh);
  const ir::Axis p = ir::axis("p");
  b.output(map({f, p}, sum(t, relu(h) * dy(t, p))), "dw2");
  b.output(map({e, f}, sum(t, gate * x(t, e))), "dw1");
  b.output(map({t, e}, sum(f, gate * w1(e, f))), "dx");
  const Plan plan = planned(b.graph());
  EXPECT_EQ(plan.steps.size(), 1u) << plan::print(plan);
  const Flushes n = joint(plan, 2);
  EXPECT_EQ(n.store + n.added, 3);
  EXPECT_EQ(largest(plan), 700 * 48);
  expect_derived(b.graph(), {}, {}, 1e-5);
}
