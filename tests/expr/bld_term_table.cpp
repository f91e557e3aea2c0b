// A table of terms begins empty, whatever its rows were used for before, and is not disturbed by one that is used meanwhile.
#include <gtest/gtest.h>

#include "tang/expr/build.hpp"
#include "tang/expr/order.hpp"
#include "tang/expr/term_table.hpp"

using namespace tang::expr;

TEST(TermTable, BorrowedRowsAreEmpty) {
  for (Id round = 0; round < 3; ++round) {
    TermTable outer;
    EXPECT_FALSE(outer.has(5));
    EXPECT_TRUE(outer.add(5));
    EXPECT_FALSE(outer.add(5));
    outer.set(5, round);
    for (Id k = 0; k < 2; ++k) {
      TermTable inner;
      EXPECT_FALSE(inner.has(5));
      inner.set(1000 * (k + 1), 7);
      EXPECT_EQ(inner[1000 * (k + 1)], 7u);
      EXPECT_FALSE(inner.has(999));
    }
    EXPECT_EQ(outer[5], round);
    EXPECT_FALSE(outer.has(1000));
  }
}

TEST(TermTable, OperandsComeBeforeUsersAndEachTermOnce) {
  Pool p;
  const Id x = p.leaf(Op::var, Type::real, 0), y = p.leaf(Op::var, Type::real, 1);
  const Id xy = p.make(Op::mul, {x, y}), sum = p.make(Op::add, {xy, x}), all = p.make(Op::mul, {sum, xy});
  EXPECT_EQ(schedule(p, all), (std::vector<Id>{x, y, xy, sum, all}));
  EXPECT_EQ(schedule(p, {xy, sum}), (std::vector<Id>{x, y, xy, sum}));
  std::vector<Id> seen;
  TermTable table;
  walk(
      p, all, table, [&](Id id) { return id == xy; }, [&](Id id) { seen.push_back(id); });
  EXPECT_EQ(seen, (std::vector<Id>{xy, x, sum, all})); // not below the product
}

// A visitor may walk, and make terms that move the pool's memory.
TEST(TermTable, WalksNest) {
  Pool p;
  Id deep = p.leaf(Op::var, Type::real, 0);
  for (int k = 0; k < 50000; ++k) deep = p.make(Op::sin, {deep});
  size_t visited = 0;
  walk(p, deep, [&](Id id) {
    if (++visited % 5000 == 0) {
      EXPECT_EQ(schedule(p, id).size(), visited);
    }
    p.literal(double(visited));
  });
  EXPECT_EQ(visited, 50001u);
}

TEST(Pool, TermsOverTheirOwnOperandsAreThemselves) {
  Pool p;
  std::vector<Id> all{p.leaf(Op::var, Type::real, 0), p.leaf(Op::var, Type::real, 1)};
  for (int k = 0; k < 3000; ++k) all.push_back(p.make(k % 2 ? Op::add : Op::mul, {all[size_t(k)], all[size_t(k) + 1]}));
  const size_t size = p.size();
  for (Id id : all) EXPECT_EQ(p.over(id, p[id].args), id);
  for (int k = 0; k < 3000; ++k)
    EXPECT_EQ(p.make(k % 2 ? Op::add : Op::mul, {all[size_t(k)], all[size_t(k) + 1]}), all[size_t(k) + 2]);
  EXPECT_EQ(p.size(), size); // found again, also after the index grew
  const Pool copy = p;
  EXPECT_EQ(copy.size(), size);
  EXPECT_NE(p.over(all[2], {all[1], all[1], 0}), all[2]);
  EXPECT_EQ(substitute(p, all[40], {}), all[40]);
  EXPECT_EQ(substitute(p, all[40], {{all[0], all[0]}}), all[40]);
}
