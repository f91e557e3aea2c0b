// What training steps ask of the rules.
#include "grad/training_step.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::test;

// The gradient of weights that are read at a composite coordinate is a sum that is stored through a view; the factor
// of a mean leaves that sum.
TEST(grad_rules, a_factor_leaves_a_sum_that_is_stored_through_a_view) {
  Builder b;
  const Tensor w = b.input("w", {12}), x = b.input("x", {3, 4, 5}), s = b.input("s", {});
  const Axis g = axis("g", 3), d = axis("d", 4), i = axis("i", 5);
  const Scalar y = s() * sum({g, d}, w(4 * Index(g) + Index(d)) * x(g, d, i));
  b.output(grad(map(std::vector<Axis>{}, sum(i, y * y)), {w})[0], "dw");
  const Graph written = b.graph();
  const rewrite::Optimized o = rewrite::optimize(written);
  ir::validate(o.graph);
  bool hoisted = false;
  for (auto& step : o.trace.steps) hoisted |= step.rule == "hoist";
  EXPECT_TRUE(hoisted) << rewrite::explain(o.trace);
  const Inputs in{{"w", random_reals({12}, 1)}, {"x", random_reals({3, 4, 5}, 2)}, {"s", random_reals({}, 3)}};
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
  EXPECT_GT(fired, 20);
}
