// What a layer adds to the backward pass does not grow with the number of layers after it: the gradient of a residual
// stream is stored where several read it, and a projection is no score.
#include "grad/training_step.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::test;

namespace {
plan::Plan planned(int64_t layers) {
  CharacterStep z;
  z.layers = layers, z.batch = 4, z.context = 64, z.model = 128, z.heads = 4, z.vocab = 64;
  return plan::make_plan(rewrite::for_planning(rewrite::optimize(character_step(z)).graph, true), {});
}
} // namespace

TEST(grad_depth, each_layer_moves_as_many_bytes_as_the_one_before) {
  const plan::Plan one = planned(1), two = planned(2), three = planned(3), four = planned(4);
  EXPECT_EQ(three.bytes_moved() - two.bytes_moved(), four.bytes_moved() - three.bytes_moved());
  EXPECT_EQ(three.steps.size() - two.steps.size(), four.steps.size() - three.steps.size());
  EXPECT_LE(two.bytes_moved() - one.bytes_moved(), 1.1 * double(four.bytes_moved() - three.bytes_moved()));
  // No projection is evaluated in two steps.
  for (auto& s : four.steps)
    for (auto& x : s.group.shared) {
      int64_t points = 1;
      for (auto& e : four.graph->nodes[x.node].comp()->points) points *= e.value();
      EXPECT_GT(points, 4 * 64 * 128) << four.graph->label({x.node, 0});
    }
}
