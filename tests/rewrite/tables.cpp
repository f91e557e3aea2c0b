// Tables: dear terms of coordinates are evaluated once each, whoever reads them.
#include <gtest/gtest.h>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::ir;

namespace {
// Sines in the graph times the points at which each is evaluated.
int64_t sines(const Graph& g) {
  int64_t n = 0;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* c = g[id].comp();
    if (!c) continue;
    int64_t points = 1;
    for (auto& e : c->extents()) points *= e.value();
    for (Id x : expr::schedule(g.pool, c->lift)) n += g.pool[x].op == Op::sin ? points : 0;
  }
  return n;
}
Scalar turned(const Tensor& x, const Axis& h, const Axis& i, const Axis& j) {
  const Scalar angle = to_real(iota(i)) * exp2(to_real(iota(j)) * -0.5);
  return x(h, i, j) * cos(angle) - x(h, i, j) * sin(angle);
}
} // namespace

TEST(rewrite_grad_tables, two_readers_share_the_sines_of_their_coordinates) {
  Builder b;
  auto [h, o, i, j] = axes<"h o i j">();
  b.output(map({h, i, j}, turned(b.input("q", {8, 6, 4}), h, i, j)), "q turned");
  b.output(map({o, i, j}, turned(b.input("k", {4, 6, 4}), o, i, j)), "k turned");
  const Graph g = b.graph();
  EXPECT_EQ(sines(g), 2 * (8 + 4) * 6 * 4);
  EXPECT_EQ(sines(rewrite::optimize(g).graph), 2 * 6 * 4);
}
// A gradient lives in half of the features, where the angle counts from 0 again.
TEST(rewrite_grad_tables, a_part_of_an_axis_reads_the_same_table) {
  Builder b;
  const Tensor q = b.input("q", {8, 6, 4}), d = b.input("d", {8, 6, 8});
  auto [h, i, j] = axes<"h i j">();
  const Axis f = axis("f", Extent(8));
  b.output(map({h, i, j}, turned(q, h, i, j)), "turned");
  const Scalar angle = to_real(iota(i)) * exp2(to_real(iota(Index(f) - 4)) * -0.5);
  b.output(map({h, i}, sum(f, masked(Index(4) <= Index(f), d(h, i, f) * cos(angle)))), "back");
  EXPECT_EQ(sines(rewrite::optimize(b.graph()).graph), 2 * 6 * 4);
}
TEST(rewrite_grad_tables, a_term_evaluated_once_or_of_pairs_stays_where_it_is) {
  Builder b;
  auto [i, j, d] = axes<"i j d">();
  const Tensor x = b.input("x", {64, 4});
  b.output(map({i, j}, sin(to_real(iota(i)) * to_real(iota(j))) + x(i, 0) * x(j, 0)), "once");
  EXPECT_EQ(rewrite::optimize(b.graph()).graph.nodes.size(), 2u); // the input and the map
}
