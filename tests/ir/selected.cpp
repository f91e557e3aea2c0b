// What inputs of indices select, and what they are compared with.
#include "tang/ir/selected.hpp"

#include <gtest/gtest.h>

#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;

TEST(selected, an_index_lies_inside_what_it_selects_and_on_both_sides_of_what_it_is_compared_with) {
  Builder b;
  const Tensor x = b.input("x", {9, 3}), at = b.input("at", {5}, Format::i32), key = b.input("key", {9}, Format::i32),
               length = b.input("length", {}, Format::i32), both = b.input("both", {5}, Format::i32);
  auto [t, c, i] = axes<"t c i">();
  const Axis place = axis("place", Extent(4));
  b.output(map({i, c}, x(at(i), c)), "selected");
  b.output(map({place, c}, sum(t, masked(Index(key(t)) + Index(2) == Index(place), x(t, c)))), "equal");
  b.output(map({c}, sum(t, masked(Index(t) < Index(length()), x(t, c)))), "before");
  b.output(map({i, c}, sum(t, masked(Index(t) < Index(both(i)), x(both(i), c)))), "selects and is compared");
  const Graph g = b.graph();
  std::map<std::string, int64_t> below;
  for (auto& [id, limit] : selected(g)) below[g[id].name] = limit;
  EXPECT_EQ(below.at("at"), 9);
  EXPECT_EQ(below.at("key"), 3);     // -2 .. 1 are places: 2 is none
  EXPECT_EQ(below.at("length"), 10); // 0 .. 9 keys
  EXPECT_EQ(below.at("both"), 9);
}
