// What the planner makes of derived gradients: kernels, buffers, bytes; and that no max was differentiated.
#include <gtest/gtest.h>

#include "tang/models/attention.hpp"
#include "tang/models/block.hpp"
#include "tang/plan/plan.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::models;

namespace {
struct Planned {
  rewrite::Trace gradient;
  plan::Plan before, after;

  int64_t largest() const {
    int64_t most = 0;
    for (auto& b : after.buffers) {
      int64_t n = 1;
      for (int64_t e : b.shape) n *= e;
      most = std::max(most, n);
    }
    return most;
  }
};

Planned planned(const Graph& g, rewrite::Trace t) {
  return {std::move(t), plan::make_plan(g, schedule::as_written()), plan::make_plan(rewrite::optimize(g).graph, {})};
}

Planned attention_backward(const AttentionOptions& o) {
  Builder b;
  const std::vector<Extent> shape{1, 2, 512, 64};
  Tensor q = b.input("q", shape), k = b.input("k", shape), v = b.input("v", shape), dout = b.input("dout", shape);
  const Attention a = attention(q, k, v, o);
  rewrite::Trace trace;
  const auto [i0, i1, i2, i3] = axes<"a b c d">();
  const Tensor loss = map(std::vector<Axis>{}, sum({i0, i1, i2, i3}, a.out(i0, i1, i2, i3) * dout(i0, i1, i2, i3)));
  const auto d = grad(loss, {q, k, v}, Where::here(), &trace);
  b.output(a.out, "out");
  b.output(d[0], "dq"), b.output(d[1], "dk"), b.output(d[2], "dv");
  return planned(b.graph(), trace);
}

int eliminations(const rewrite::Trace& t) {
  int n = 0;
  for (auto& s : t.steps) n += s.law.theorem == "zero_gradient_of_max";
  return n;
}
} // namespace

TEST(grad_plans, attention_backward_has_no_array_of_scores) {
  for (bool masked : {false, true}) {
    AttentionOptions o;
    if (masked) o.mask = causal();
    const Planned p = attention_backward(o);
    EXPECT_EQ(eliminations(p.gradient), 1);
    EXPECT_EQ(p.largest(), 2 * 512 * 64);  // nothing of 512 x 512
    // Forward (row maxima and sums, the unnormalised result, out, dout / sum), D, and one backward of dq, dk and dv.
    EXPECT_EQ(p.after.steps.size(), 3u) << plan::print(p.after);
    // In arrays of 2 x 512 x 64 f32: forward reads q, k, v, dout and writes 3; D reads 2; backward reads q, k, v and
    // dout / sum and writes 3. Rows of 2 x 512: two written, two of D's step, two read.
    EXPECT_EQ(p.after.bytes_moved(), 16 * 2 * 512 * 64 * 4 + 6 * 2 * 512 * 4) << plan::print(p.after);
  }
}

namespace {
// The paper's block at 512 rows, forward and backward.
Graph block_and_gradients() {
  Builder b;
  const BlockSize s;
  Tensor x = b.input("x", {1, 512, 576}), dy = b.input("dy", {1, 512, 576});
  const BlockWeights w = block_weights(b, "l0", s);
  const Tensor y = block(x, w, s);
  b.output(y, "y");
  const std::vector<Tensor> by{x, w.attention_norm, w.q, w.k, w.v, w.o, w.mlp_norm, w.gate, w.up, w.down};
  const auto d = vjp(y, dy, by);
  for (size_t k = 0; k < by.size(); ++k) b.output(d[k], "d" + by[k].name());
  return b.graph();
}
} // namespace

TEST(grad_plans, transformer_block_forward_and_backward) {
  const Planned p = planned(block_and_gradients(), {});
  EXPECT_EQ(p.largest(), 1536 * 576);  // a gradient of a weight; the scores would be 9 x 512 x 512
  RecordProperty("kernels", std::to_string(p.before.steps.size()) + " -> " + std::to_string(p.after.steps.size()));
  RecordProperty("megabytes", std::to_string(p.before.bytes_moved() / 1e6) + " -> " + std::to_string(p.after.bytes_moved() / 1e6));
  EXPECT_EQ(p.before.steps.size(), 74u);
  EXPECT_EQ(p.after.steps.size(), 39u) << plan::print(p.after); // two of them tables of the rotary angles, 512 x 32
}

// What the paper counts (its section 3): the same step with short contractions stored, and with them evaluated where
// they are read. There 63 kernels became 49, of a graph of more nodes; here 42 became 39. No array of scores is left.
TEST(grad_plans, the_papers_training_example_before_and_after) {
  const Graph g = rewrite::optimize(block_and_gradients()).graph;
  schedule::Schedule apart;
  apart.share_contractions = false;
  const plan::Plan before = plan::make_plan(g, apart), after = plan::make_plan(g, {});
  auto scores = [](const plan::Plan& p) {
    int n = 0;
    for (auto& b : p.buffers) {
      int64_t size = 1;
      for (int64_t e : b.shape) size *= e;
      n += size == 9 * 512 * 512;
    }
    return n;
  };
  std::printf("steps %zu -> %zu, moved %.2f -> %.2f MB, held %.2f -> %.2f MB, arrays of scores %d -> %d\n", before.steps.size(),
              after.steps.size(), double(before.bytes_moved()) / 1e6, double(after.bytes_moved()) / 1e6,
              double(before.arena_bytes) / 1e6, double(after.arena_bytes) / 1e6, scores(before), scores(after));
  EXPECT_EQ(before.steps.size(), 42u);
  EXPECT_EQ(after.steps.size(), 39u);
  EXPECT_EQ(before.bytes_moved(), 248933888);
  EXPECT_EQ(after.bytes_moved(), 172987904);
  EXPECT_EQ(before.arena_bytes, 33202176);
  EXPECT_EQ(after.arena_bytes, 23764992);
  EXPECT_EQ(scores(before), 2); // probabilities' sums and their gradients, 9 x 512 x 512 each
  EXPECT_EQ(scores(after), 0);
}
