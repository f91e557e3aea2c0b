// Models through the planner and the machine: as written, optimized, and under every tile size.
#include "plan/graphs.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/mlp.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/recurrent.hpp"

using namespace tang;
using namespace tang::test;

namespace {
struct Qkv {
  Tensor q, k, v;
};

Qkv heads(Builder& b, int64_t h, int64_t n, int64_t m, int64_t d, int64_t c) {
  Tensor q = b.input("q", {1, h, n, d}), k = b.input("k", {1, h, m, d}), v = b.input("v", {1, h, m, c});
  return {q, k, v};
}

// As written, naive with sharing, and optimized; the outputs of all are the oracle's.
Plan all_ways(const Graph& g, eval::Inputs given = {}) {
  verified(g, given, schedule::as_written());
  verified(g, given);
  compiled(g, given);
  return verified(optimized(g), given);
}
} // namespace

TEST(cases, attention_variants_store_no_score) {
  using namespace models;

  struct Variant {
    const char* name;
    std::function<AttentionOptions(Builder&)> options;
  };

  const std::vector<Variant> variants = {
      {"full", [](Builder&) { return AttentionOptions{}; }},
      {"causal",
       [](Builder&) {
         AttentionOptions o;
         o.mask = causal();
         return o;
       }},
      {"window and sink",
       [](Builder&) {
         AttentionOptions o;
         o.mask = causal() && (window(4) || sink(2));
         return o;
       }},
      {"soft cap, alibi",
       [](Builder& b) {
         AttentionOptions o;
         o.changes = {soft_cap(2), alibi(b.input("slopes", {2}))};
         o.mask = causal();
         return o;
       }},
      {"documents",
       [](Builder& b) {
         AttentionOptions o;
         Tensor qi = b.input("qi", {1, 11}, Format::i32), ki = b.input("ki", {1, 13}, Format::i32);
         o.mask = same_document(qi, ki);
         return o;
       }},
      {"boolean mask",
       [](Builder& b) {
         AttentionOptions o;
         o.keep = b.input("keep", {11, 13}, Format::boolean);
         return o;
       }},
      {"sigmoid",
       [](Builder&) {
         AttentionOptions o;
         o.sigmoid = true;
         o.mask = causal();
         return o;
       }},
  };
  for (auto& v : variants) {
    SCOPED_TRACE(v.name);
    Builder b;
    const Qkv t = heads(b, 2, 11, 13, 3, 4);
    const models::Attention a = models::attention(t.q, t.k, t.v, v.options(b));
    b.output(a.out, "out");
    if (a.lse.builder) b.output(a.lse, "lse");
    const Plan p = all_ways(b.graph());
    EXPECT_LT(largest_buffer(p), 2 * 11 * 13) << plan::print(p);
    EXPECT_EQ(p.steps.size(), 1u) << plan::print(p);
  }
}

TEST(cases, grouped_queries_with_two_head_axes) {
  Builder b;
  Tensor q = b.input("q", {1, 2, 3, 9, 4}), k = b.input("k", {1, 2, 9, 4}), v = b.input("v", {1, 2, 9, 3});
  models::AttentionOptions o;
  o.mask = models::causal();
  b.output(models::attention(q, k, v, o).out, "out");
  const Plan p = all_ways(b.graph());
  EXPECT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(p.steps[0].group.extent.size(), 5u);
  EXPECT_LT(largest_buffer(p), 2 * 3 * 9 * 9);
}

TEST(cases, decode_reads_its_scores_once_and_stores_none) {
  Builder b;
  const Qkv t = heads(b, 2, 1, 40, 4, 4); // 40 scores read from 164 words: not larger than what it reads
  auto [s, h, i, j, d, c] = axes<"s h i j d c">();
  auto state = fold(online_softmax(2), j, {sum(d, t.q(s, h, i, d) * t.k(s, h, j, d)), 1.0, t.v(s, h, j, c)});
  b.output(map({s, h, i, c}, ratio(state[2], state[1])), "out");
  const Plan p = verified(b.graph());
  verified(b.graph(), {}, schedule::as_written());
  EXPECT_EQ(p.steps.size(), 1u) << plan::print(p);
  EXPECT_EQ(largest_buffer(p), 8);
}

TEST(cases, projections_are_stored_rather_than_scores) {
  Builder b; // q, k and v projections are short too: all fit the limit, the scores win
  Tensor x = b.input("x", {30, 6}), wq = b.param("wq", {4, 6}), wk = b.param("wk", {4, 6}),
         wv = b.param("wv", {4, 6});
  auto [i, j, e, d, c] = axes<"i j e d c">();
  auto project = [&](const Axis& row, const Axis& col, const Tensor& w) {
    return sum(e, x(row, e) * w(col, e));
  };
  Scalar score = sum(d, project(i, d, wq) * project(j, d, wk));
  Scalar weight = exp(score - max(j, score));
  b.output(map({i, c}, ratio(sum(j, weight * project(j, c, wv)), sum(j, weight))), "out");
  const Plan p = all_ways(b.graph());
  EXPECT_EQ(largest_buffer(p), 120) << plan::print(p);
}

TEST(cases, softmax_and_norms) {
  for (bool stored : {false, true}) {
    Builder b;
    b.output(models::softmax(b.input("x", {5, 3, 17}), stored), "y");
    const Plan p = all_ways(b.graph());
    EXPECT_LE(p.steps.size(), stored ? 3u : 2u) << plan::print(p);
  }
  Builder b;
  Tensor x = b.input("x", {12, 10}), w = b.param("w", {7, 10});
  b.output(models::linear(models::rms_norm(x, b.param("g", {10})), w, {}), "rms");
  b.output(models::linear(models::layer_norm(x, b.param("g2", {10}), b.param("b2", {10})), w,
                          b.param("bias", {7})),
           "layer");
  b.output(models::layer_norm(x, b.param("g3", {10}), {}, {1e-5, models::Variance::welford}), "welford");
  all_ways(b.graph());
}

TEST(cases, mlp_swiglu_and_convolution) {
  Builder b;
  Tensor x = b.input("x", {9, 6});
  b.output(models::mlp(
               x,
               {{b.param("w1", {20, 6}), b.param("b1", {20})}, {b.param("w2", {5, 20}), b.param("b2", {5})}},
               [](const Scalar& s) { return tang::ir::gelu_tanh(s); }),
           "mlp");
  b.output(models::swiglu(x, b.param("gate", {20, 6}), b.param("up", {20, 6}), b.param("down", {6, 20})),
           "swiglu");
  all_ways(b.graph());

  Builder c;
  Tensor image = c.input("image", {2, 3, 7, 8}), f = c.param("f", {4, 3, 3, 3});
  auto [n, o, i, y, z] = axes<"n o i y z">();
  const Axis r = axis("r", Extent(3)), s = axis("s", Extent(3)), oy = axis("oy", Extent(7)),
             oz = axis("oz", Extent(8));
  Scalar px = image.at_or(0.0, {n, i, Index(oy) + Index(r) - Index(1), Index(oz) + Index(s) - Index(1)});
  Tensor conv = map({n, o, oy, oz}, relu(sum({i, r, s}, px * f(o, i, r, s))), "conv");
  c.output(conv, "conv");
  const Axis py = axis("py", Extent(3)), pz = axis("pz", Extent(4)), u = axis("u", Extent(2)),
             v = axis("v", Extent(2));
  c.output(
      map({n, o, py, pz}, max({u, v}, conv.at({n, o, 2 * Index(py) + Index(u), 2 * Index(pz) + Index(v)}))),
      "pool");
  all_ways(c.graph());
}

TEST(cases, transformer_block) {
  Builder b;
  const int64_t n = 10, e = 6, h = 2, d = 3;
  Tensor x = b.input("x", {1, n, e});
  auto rows = [&](const Tensor& t, const char* w) { return models::linear(t, b.param(w, {e, e}), {}); };
  Tensor normed = models::rms_norm(x, b.param("g1", {e}));
  auto split = [&](const Tensor& t) {
    const Axis s = axis("s", Extent(1)), hh = axis("h", Extent(h)), i = axis("i", Extent(n)),
               k = axis("k", Extent(d));
    return map({s, hh, i, k}, t.at({s, i, d * Index(hh) + Index(k)}), "split");
  };
  models::AttentionOptions o;
  o.mask = models::causal();
  Tensor q = split(rows(normed, "wq")), k = split(rows(normed, "wk")), v = split(rows(normed, "wv"));
  Tensor a = models::attention(q, k, v, o).out;
  const Axis s = axis("s", Extent(1)), hh = axis("h", Extent(h)), i = axis("i", Extent(n)),
             dd = axis("d", Extent(d)), m = axis("m", Extent(e));
  Tensor wo = b.param("wo", {e, h, d});
  Tensor x1 = map({s, i, m}, x(s, i, m) + sum({hh, dd}, a(s, hh, i, dd) * wo(m, hh, dd)), "x1");
  Tensor ff = models::swiglu(models::rms_norm(x1, b.param("g2", {e})), b.param("gate", {12, e}),
                             b.param("up", {12, e}), b.param("down", {e, 12}));
  b.output(models::add(x1, ff), "y");
  const Plan p = all_ways(b.graph());
  EXPECT_LT(largest_buffer(p), h * n * n) << plan::print(p);
}

TEST(cases, argmax_topk_and_a_gather_by_the_result) {
  Builder b;
  Tensor x = b.input("x", {4, 23}), table = b.param("table", {23, 5});
  auto [i, j, d] = axes<"i j d">();
  auto best = fold(argmax(), j, {x(i, j), iota(j)});
  b.output(map({i}, best[1], "at"), "at");
  b.output(map({i, d}, table(best[1], d), "row"), "row");
  auto [values, indices] = top(2, j, x(i, j));
  b.output(map({i}, values[1], "second"), "second");
  b.output(map({i}, indices[1], "second at"), "second at");
  const Plan p = all_ways(b.graph());
  EXPECT_LE(p.steps.size(), 2u) << plan::print(p);
}

TEST(cases, zero_sized_dimensions) {
  for (int64_t n : {0, 3})
    for (int64_t m : {0, 3}) {
      Builder b;
      const Qkv t = heads(b, 2, n, m, 3, 2);
      const models::Attention a = models::attention(t.q, t.k, t.v);
      b.output(a.out, "out");
      b.output(a.lse, "lse");
      all_ways(b.graph());
    }
}

TEST(cases, output_views_and_predicates) {
  Builder b;
  Tensor x = b.input("x", {6, 5}), keep = b.input("keep", {6, 5}, Format::boolean);
  auto [i, j] = axes<"i j">();
  const Axis p = axis("p", Extent(2));
  Tensor up = map_at({i, p, j}, {2 * Index(i) + Index(p), Index(j)}, {12, 5},
                     x(i, j) * (1.0 + to_real(iota(p))), "up");
  b.output(up, "up");
  Tensor some = map({i, j}, masked(keep(i, j), x(i, j)), "some");
  b.output(some, "some");
  b.output(map({i}, sum(j, masked(keep(i, j), some(i, j)))), "s");
  const Axis t = axis("t", Extent(12));
  b.output(map({t}, max(j, up(t, j))), "m");
  all_ways(b.graph());
}

TEST(cases, gru_runs_its_body_once_a_step) {
  Builder b;
  Tensor x = b.input("x", {7, 2, 3}), h0 = b.input("h0", {2, 4});
  models::Gru p;
  p.cell = {b.param("w", {12, 3}),  b.param("u", {12, 4}),  b.param("bias", {12}),
            b.param("ubias", {12}), models::Layout::out_in, 4};
  const models::Sequence s = models::gru(x, h0, p);
  b.output(s.all, "all");
  b.output(s.last, "last");
  const Plan plan = verified(b.graph());
  size_t recurs = 0;
  for (auto& step : plan.steps) recurs += step.recur.has_value();
  EXPECT_EQ(recurs, 1u) << plan::print(plan);
  verified(b.graph(), {}, schedule::as_written());
}

TEST(cases, delta_rule_updates_its_state_in_place) {
  Builder b;
  Tensor q = b.input("q", {6, 4}), k = b.input("k", {6, 4}), v = b.input("v", {6, 3}),
         gate = b.input("gate", {6}), beta = b.input("beta", {6});
  const models::DeltaRule r = models::gated_delta_rule(q, k, v, gate, beta, b.input("s0", {4, 3}));
  b.output(r.out, "o");
  b.output(r.state, "S");
  verified(b.graph());

  // The same with the decay inside: each column of the state is read and then written by one workgroup.
  Builder c;
  Tensor kk = c.input("k", {6, 4}), vv = c.input("v", {6, 3});
  const Axis t = axis("t", Extent(6)), x = axis("x", Extent(4)), y = axis("y", Extent(3)),
             z = axis("z", Extent(4));
  Recurred s = recur(t, {carried("S", {4, 3})}, [&](const std::vector<Tensor>& old) -> Step {
    Scalar miss = vv(t, y) - 0.9 * sum(z, old[0](z, y) * kk(t, z));
    return {{map({x, y}, 0.9 * old[0](x, y) + kk(t, x) * miss, "next")}, {old[0]}};
  });
  c.output(s.states[0], "S");
  c.output(s.emits[0], "history");
  const Plan p = verified(c.graph());
  ASSERT_EQ(p.steps.size(), 1u);
  const Plan& body = *p.steps[0].body;
  EXPECT_EQ(body.steps.size(), 1u) << plan::print(p);
  ASSERT_EQ(body.buffers.size(), 1u);
  EXPECT_TRUE(body.buffers[0].overwrites.has_value()) << plan::print(p);
}

TEST(cases, only_the_next_state_takes_the_memory_of_the_old_one) {
  for (double shift : {1.0, 2.0, 3.0, 4.0}) { // in whatever order the nodes are visited
    Builder b;
    const Axis t = axis("t", Extent(5)), i = axis("i", Extent(3));
    Recurred r = recur(t, {carried("a", {3})}, [&](const std::vector<Tensor>& old) -> Step {
      Tensor next = map({i}, tanh(old[0](i)) + shift, "next");
      return {{next}, {map({i}, old[0](i) * 2.0, "twice"), map({i}, old[0](i) * 3.0, "thrice")}};
    });
    b.output(r.states[0], "a");
    b.output(r.emits[0], "twice");
    b.output(r.emits[1], "thrice");
    const Plan p = verified(b.graph());
    const Plan& body = *p.steps.at(0).body;
    const NodeId next = (*p.graph)[*p.steps[0].recur].recur()->states[0].out.node;
    EXPECT_EQ(body.buffers.size(), 3u);
    for (auto& x : body.buffers) EXPECT_EQ(x.overwrites.has_value(), x.of.node == next) << plan::print(p);
  }
}

TEST(cases, states_that_change_places_are_not_overwritten) {
  Builder b;
  const Axis t = axis("t", Extent(5)), i = axis("i", Extent(3));
  Tensor x = b.input("x", {3});
  Recurred r = recur(t, {carried("a", {3}), carried("b", x)}, [&](const std::vector<Tensor>& old) -> Step {
    return {{old[1], map({i}, old[0](i) + old[1](i) + 1.0, "next b")}, {old[0]}};
  });
  b.output(r.states[0], "a");
  b.output(r.states[1], "b");
  b.output(r.emits[0], "history");
  verified(b.graph());
}

TEST(cases, outputs_in_reverse_order_give_the_same_groups) {
  auto build = [](bool reversed) {
    Builder b;
    const Qkv t = heads(b, 2, 11, 13, 3, 4);
    Tensor w = b.param("w", {4, 4});
    auto [s, h, i, c, d, j] = axes<"s h i c d j">();
    const models::Attention a = models::attention(t.q, t.k, t.v);
    Tensor y = map({s, h, i, c}, sum(d, a.out(s, h, i, d) * w(c, d)), "y");
    Tensor z = map({s, h, i}, max(c, y(s, h, i, c)) + a.lse(s, h, i), "z");
    auto [e] = axes<"e">();
    Scalar dot = sum(e, t.q(s, h, i, e) * t.k(s, h, j, e));
    Tensor u = map({s, h, i}, sum(j, sigmoid(dot)), "u"), v = map({s, h, j}, sum(i, tanh(dot)), "v");
    std::vector<std::pair<Tensor, std::string>> out{{a.out, "out"}, {a.lse, "lse"}, {y, "y"},
                                                    {z, "z"},       {u, "sums"},    {v, "tanhs"}};
    if (reversed) std::reverse(out.begin(), out.end());
    for (auto& o : out) b.output(o.first, o.second);
    return b.graph();
  };
  const Plan a = verified(build(false)), b = verified(build(true));
  EXPECT_EQ(groups_of(a), groups_of(b)) << plan::print(a) << plan::print(b);
  EXPECT_EQ(a.arena_bytes, b.arena_bytes);
}
