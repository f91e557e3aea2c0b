// Workgroups may add to one element; a store or a read there by another is a race as ever.
#include <gtest/gtest.h>

#include "tang/kernel/add_in_place.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/simulate.hpp"

using namespace tang;
using namespace tang::kernel;

namespace {
// Every block b of 4 does `value(p, leaf of the sum)` to element x of [2], x < 2.
Kernel of(const std::function<Id(Pool&, Id)>& value) {
  Kernel k;
  Memory m;
  m.name = "g0", m.shape = {2}, m.access = Access::read_write;
  k.add(m);
  k.grid = {{k.fresh("b"), 4, 1}};
  Apply a;
  a.axes = {{k.fresh("x"), 2}};
  const Ref at{0, {{variable(a.axes[0].var), {}}}, false};
  a.body.refs = {at};
  a.body.values = {value(*k.pool, k.pool->leaf(expr::Op::arg, Type::real, 0))};
  a.dst = {at};
  k.body = {{a}};
  return k;
}

bool races(const Kernel& k, std::vector<double>& result) {
  std::vector<Buffer> globals(1);
  globals[0].r = {1, 2};
  const Outcome o = simulate(k, globals);
  result = globals[0].r;
  EXPECT_EQ(o.clean(), problems(k).empty()) << text(o) << (problems(k).empty() ? "" : problems(k)[0]);
  return !o.clean();
}
} // namespace

TEST(add_in_place, workgroups_that_add_may_meet) {
  std::vector<double> sum;
  const Kernel k = of([](Pool& p, Id there) { return p.make(expr::Op::add, {p.literal(0.5), there}); });
  EXPECT_EQ(added_to(k, std::get<Apply>(k.body[0].node)), 0);
  EXPECT_FALSE(races(k, sum));
  EXPECT_EQ(sum, (std::vector<double>{3, 4}));
  const Body rest = addend(k, std::get<Apply>(k.body[0].node), 0);
  EXPECT_TRUE(rest.refs.empty());
  EXPECT_EQ((*k.pool)[rest.values[0]].r, 0.5);
}

TEST(add_in_place, a_workgroup_alone_stores_and_then_adds) {
  std::vector<double> sum;
  Kernel k = of([](Pool& p, Id there) { return p.make(expr::Op::add, {p.literal(0.5), there}); });
  k.grid[0].extent = 1;
  Apply store = std::get<Apply>(k.body[0].node);
  store.body = {};
  store.body.values = {k.pool->literal(7.0)};
  store.axes[0].var = k.fresh("y");
  store.dst[0].index[0].affine = variable(store.axes[0].var);
  k.body.insert(k.body.begin(), {store});
  EXPECT_FALSE(races(k, sum));
  EXPECT_EQ(sum, (std::vector<double>{7.5, 7.5}));
}

TEST(add_in_place, whoever_does_otherwise_races) {
  std::vector<double> sum;
  EXPECT_TRUE(races(of([](Pool& p, Id there) { return p.make(expr::Op::mul, {p.literal(0.5), there}); }), sum));
  EXPECT_TRUE(races(of([](Pool& p, Id there) { return p.make(expr::Op::add, {there, there}); }), sum));
  Kernel k = of([](Pool& p, Id there) { return p.make(expr::Op::add, {p.literal(0.5), there}); });
  Apply store = std::get<Apply>(k.body[0].node);
  store.axes[0].var = k.fresh("y");
  store.dst[0].index[0].affine = variable(store.axes[0].var);
  store.body = {};
  store.body.values = {k.pool->literal(0.0)};
  k.body.push_back({store});
  EXPECT_TRUE(races(k, sum));
}
