// Guards that compare a lane with a value read outside the lanes' loop.
#include "run/harness.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

TEST(guards, of_lanes_with_a_value_of_the_row) {
  Builder b;
  Tensor s = b.input("s", {9}), t = b.input("t", {9}, Format::i32);
  const Axis i = axis("i"), j = axis("j", Extent(50));
  b.output(map({i, j}, where(Index(j) == Index(t(i)), s(i), 0.0)), "hit");
  b.output(map({i, j}, where(Index(t(i)) - 2 * Index(j) + 3 >= 0, s(i), 0.0)), "below");
  expect_program(b.graph(), {{"t", eval::indices({9}, {0, 49, 17, 31, 16, 8, 48, 3, 25})}});
}
