// Which operand of a product is read again: workgroups go over all rows for a block of columns where that reads less.
#include <gtest/gtest.h>

#include "lower/pipeline.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
Graph product(int64_t rows, int64_t columns, int64_t depth) {
  Builder b;
  const auto [i, j, k] = axes<"i j k">();
  const Tensor x = b.input("x", {rows, depth}), w = b.input("w", {depth, columns});
  b.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y");
  return b.graph();
}

// The last kernel of the product on a worker whose nearest shared memory holds little.
kernel::Kernel kernel_of(const Graph& g, Derived& d) {
  target::Target t = target::c_target(4, 1);
  t.fast_memory = 32 << 10;
  d = derive(g, {}, t);
  return d.program.kernels.back().kernel;
}
} // namespace

TEST(outer, what_is_read_again_is_the_smaller_operand) {
  struct Case {
    int64_t rows, columns;
  };
  for (const Case c : {Case{300, 1100}, Case{131, 1297}, Case{1500, 1100}}) { // more columns than one block has
    Derived d;
    const Graph g = product(c.rows, c.columns, 6);
    const kernel::Kernel k = kernel_of(g, d);
    ASSERT_EQ(k.grid.size(), 2u) << kernel::print(k);
    const auto blocks = [](const auto& a) { return (a.extent + a.step - 1) / a.step; };
    // The outer axis' operand is read once, the other's once for each of its blocks.
    const auto &outer = k.grid[0], &inner = k.grid[1];
    ASSERT_TRUE(blocks(outer) > 1 && blocks(inner) > 1) << kernel::print(k);
    EXPECT_LE(outer.extent + blocks(outer) * inner.extent, inner.extent + blocks(inner) * outer.extent) << kernel::print(k);
    const eval::Inputs in = random_inputs(g);
    EXPECT_LT(eval::difference(simulate(d, in).at("y"), filled(eval::run(g, in).at("y"))), 1e-5);
  }
}
