// What training steps ask of the rules.
#include "grad/training_step.hpp"
#include "tang/kernel/print.hpp"
#include "tang/models/softmax.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::test;

// The gradient of weights that are read at a composite coordinate is a sum that is stored through a view; the factor
// of a mean leaves that sum.
TEST(grad_rules, a_factor_leaves_a_sum_that_is_stored_through_a_view) {
  Builder b;
  const Tensor w = b.input("w", {12}), x = b.input("x", {3, 4, 5}), s = b.input("s", {});
  const Axis g = axis("g", 3), d = axis("d", 4), i = axis("i", 5);
  const Tensor y = map({i}, s() * sum({g, d}, w(4 * Index(g) + Index(d)) * x(g, d, i)));
  b.output(vjp(y, b.input("dy", {5}), {w})[0], "dw");
  const Graph written = b.graph();
  const rewrite::Optimized o = rewrite::optimize(written);
  ir::validate(o.graph);
  bool hoisted = false;
  for (auto& step : o.trace.steps) hoisted |= step.rule == "hoist";
  EXPECT_TRUE(hoisted) << rewrite::explain(o.trace);
  const Inputs in{{"w", random_reals({12}, 1)}, {"x", random_reals({3, 4, 5}, 2)}, {"s", random_reals({}, 3)},
                  {"dy", random_reals({5}, 4)}};
  EXPECT_LT(eval::difference(eval::run(o.graph, in)["dw"], eval::run(written, in)["dw"]), 1e-14);
  expect_program(written, in);
}

// Every rule leaves a graph of a training step whole.
TEST(grad_rules, a_training_step_is_a_graph_after_every_rule) {
  std::vector<rewrite::Rule> rules = rewrite::normal_rules();
  int fired = 0;
  for (auto& r : rules)
    r.apply = [apply = r.apply, &fired](const Graph& g) {
      auto out = apply(g);
      if (out) ir::validate(out->graph), ++fired;
      return out;
    };
  for (bool scaled : {false, true})
    rewrite::optimize(character_step({.layers = 2, .clip = 1, .scaled = scaled}), rules);
  EXPECT_GT(fired, 10);
}

// Heads and features fill a weight's rows; an axis of one value beside them, as the queries of a group of one, changes
// nothing: the gradient is a plain sum stored through a view, with no bound that tells heads apart.
TEST(grad_rules, an_axis_of_one_value_does_not_hide_a_view) {
  for (int64_t group : {1, 2}) {
    Builder b;
    const Tensor w = b.input("w", {8 * group, 3}), x = b.input("x", {5, 3});
    const Axis g = axis("g", 2), r = axis("r", Extent(group)), d = axis("d", 4), i = axis("i"), m = axis("m");
    const Tensor y = map({g, r, i, d}, sum(m, w(4 * group * Index(g) + 4 * Index(r) + Index(d), m) * x(i, m)));
    b.output(vjp(y, b.input("dy", {2, group, 5, 4}), {w})[0], "dw");
    const Graph written = b.graph();
    const rewrite::Optimized o = rewrite::optimize(written);
    for (ir::NodeId id = 0; id < o.graph.nodes.size(); ++id) {
      if (auto* c = o.graph[id].comp()) {
        EXPECT_EQ(c->domain, ir::everywhere()) << o.graph.label({id, 0});
      }
    }
    Inputs in{{"w", random_reals({8 * group, 3}, 1)}, {"x", random_reals({5, 3}, 2)}, {"dy", random_reals({2, group, 5, 4}, 3)}};
    EXPECT_LT(eval::difference(eval::run(o.graph, in)["dw"], eval::run(written, in)["dw"]), 1e-14);
    expect_program(written, in);
  }
}

// softmax(scores) of values with a factor a key: the weight's contraction stands alone, the factor is the values'.
TEST(grad_rules, a_factor_of_a_key_stays_with_the_values) {
  Builder b;
  const Tensor q = b.input("q", {64, 16}), k = b.input("k", {64, 16}), v = b.input("v", {64, 32}), s = b.input("s", {64});
  auto [i, j, d, c] = axes<"i j d c">();
  const Scalar score = sum(d, q(i, d) * k(j, d));
  b.output(map({i, c}, models::attend(j, score, v(j, c) / sqrt(square(s(j)) + 1.0)).out), "o");
  const Graph g = b.graph();
  const run::Derivation d1 = run::derive(g, {});
  int contractions = 0; // the scores, and the weights with the values
  for (auto& l : d1.kernels.kernels) {
    const std::string text = kernel::print(l.kernel);
    for (size_t at = 0; (at = text.find("contract m", at)) != std::string::npos; ++at) ++contractions;
  }
  EXPECT_EQ(contractions, 2);
  expect_program(g);
}
