// Lanes that add their elements of a fragment: as many in one instruction as lie next to each other.
#include <gtest/gtest.h>

#include <algorithm>

#include "tang/emit/cuda_add.hpp"

using namespace tang;
using kernel::variable;

namespace {
struct Digit {
  bool row;
  int64_t extent, of;
};

// A fragment [64, 64] that is added to an array whose dimensions are these digits of its rows and columns.
std::string added(const std::vector<Digit>& digits) {
  kernel::Kernel k;
  kernel::Memory sums, tile;
  sums.name = "g0", sums.access = kernel::Access::read_write;
  tile.name = "t0", tile.home = kernel::Home::fragment, tile.shape = {64, 64}, tile.strides = {64, 1};
  kernel::role::Add x;
  kernel::Ref to{0, {}, false}, from{1, {{}, {}}, false};
  x.columns = 64, x.row.flat = k.fresh("r"), x.column.flat = k.fresh("c");
  for (auto& d : digits) {
    const kernel::TileAxis axis{k.fresh("x"), d.extent};
    (d.row ? x.row : x.column).digits.push_back(axis);
    x.what.axes.push_back(axis);
    to.index.push_back({variable(axis.var), {}});
    sums.shape.push_back(d.extent);
    auto& at = from.index[d.row ? 0 : 1].affine;
    at = at + variable(axis.var, d.of);
  }
  for (bool row : {true, false}) { // the slowest first
    auto& all = (row ? x.row : x.column).digits;
    const kernel::Affine& at = from.index[row ? 0 : 1].affine;
    std::sort(all.begin(), all.end(), [&](auto& a, auto& b) { return coefficient(at, a.var) > coefficient(at, b.var); });
  }
  sums.strides = kernel::row_major(sums.shape);
  k.memories = {sums, tile};
  x.what.dst = {to};
  x.what.body.refs = {from};
  x.what.body.values = {k.pool->leaf(expr::Op::arg, expr::Type::real, 0)};
  const emit::COptions o;
  emit::Unit u(k, o);
  emit::print_add(u, x);
  return u.out;
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
} // namespace

TEST(cuda_add, as_lanes_hold_it_four_at_a_time) {
  const std::string text = added({{true, 4, 16}, {false, 8, 8}, {true, 8, 1}, {false, 4, 2}, {true, 2, 8}, {false, 2, 1}});
  EXPECT_EQ(count(text, "tang_add4(to + "), 8) << text;
  EXPECT_EQ(count(text, "tang_add4(to + 128, m1 + 4);"), 1) << text; // the next eight columns
  EXPECT_EQ(count(text, "tang_add4(to + 896, m1 + 28);"), 1) << text;
}

TEST(cuda_add, row_by_row_two_neighbours) {
  const std::string text = added({{true, 64, 1}, {false, 64, 1}});
  EXPECT_EQ(count(text, "tang_add2(to + "), 16) << text;
  EXPECT_EQ(count(text, "tang_add2(to + 520, m1 + 6);"), 1) << text; // eight rows and eight columns on
}

TEST(cuda_add, column_by_column_one) {
  const std::string text = added({{false, 64, 1}, {true, 64, 1}});
  EXPECT_EQ(count(text, "tang_add1(to + "), 32) << text;
  EXPECT_EQ(count(text, "tang_add1(to + 64, m1 + 1);"), 1) << text;
}
