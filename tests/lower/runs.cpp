// Sums over the terms of one sorted key: each place folds its own run, whose ends halving finds.
#include "lower/pipeline.hpp"
#include "tang/base/match.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
// y[n, x, c] = sum of w[n, t, c] over the t whose key is x.
Graph by_key(int64_t rows, int64_t keys, int64_t places, int64_t width, bool sorted, int64_t offset = 0) {
  Builder b;
  Tensor key = b.input("key", {rows, keys}, Format::i32);
  if (sorted) key = set_sorted(key);
  const Tensor w = b.input("w", {rows, keys, width});
  auto [n, t, c] = axes<"n t c">();
  const Axis x = axis("x", Extent(places));
  const auto here = Index(x) == Index(key(n, t)) + Index(offset);
  b.output(map({n, x, c}, sum(t, masked(here, w(n, t, c)))), "y");
  return b.graph();
}

// Sorted rows, with repeats, gaps, and keys beyond both ends.
eval::Array keys_of(int64_t rows, int64_t keys, int64_t places) {
  std::vector<int64_t> v;
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t t = 0; t < keys; ++t) v.push_back((t * t + n) * (places + 4) / std::max<int64_t>(1, keys * keys) - 2);
  return eval::indices({rows, keys}, v);
}

int searches(const kernel::Block& b) {
  int n = 0;
  for (auto& s : b)
    std::visit(Match{[&](const kernel::Fold& f) { n += f.search; }, [&](const kernel::Loop& l) { n += searches(l.body); },
                     [&](const kernel::If& x) { n += searches(x.then); }, [](const auto&) {}},
               s.node);
  return n;
}

int searches(const Derived& d) {
  int n = 0;
  for (auto& l : d.program.kernels) n += searches(l.kernel.body);
  return n;
}
} // namespace

TEST(lower_grad_runs, each_place_folds_its_own_run) {
  for (int64_t rows : {1, 3})
    for (int64_t keys : {1, 40})
      for (int64_t offset : {0, 3}) {
        const Graph g = by_key(rows, keys, 9, 5, true, offset);
        expect_derived(g, {{"key", keys_of(rows, keys, 9)}});
        if (keys > 1) {
          EXPECT_EQ(searches(derive(g)), 1);
        }
      }
  EXPECT_EQ(searches(derive(by_key(1, 40, 9, 5, false))), 0);
}

TEST(lower_grad_runs, lanes_of_a_workgroup_search_side_by_side) {
  target::Target t = target::cuda_target();
  t.workgroup_limit = 64;
  t.workers = 4;
  const Graph g = by_key(2, 300, 50, 40, true);
  const eval::Inputs inputs = random_inputs(g, {{"key", keys_of(2, 300, 50)}});
  Derived d = derive(g, {}, t);
  for (auto& l : d.program.kernels) l.kernel = kernel::legalize(l.kernel, t);
  EXPECT_EQ(searches(d), 1);
  auto got = simulate(d, inputs);
  for (auto& [name, a] : eval::run(g, inputs)) EXPECT_LT(eval::difference(got[name], filled(a)), 2e-6) << name;
}

// 64 places, 4096 keys, sums of 16 columns: no step is spent on keys of other places.
TEST(lower_grad_runs, work_is_that_of_the_terms) {
  const Graph g = by_key(1, 4096, 64, 16, true);
  const Derived d = derive(g);
  const eval::Inputs inputs = random_inputs(g, {{"key", keys_of(1, 4096, 64)}});
  int64_t steps = 0;
  simulate(d, inputs, kernel::Order::forward, [&](const lower::Lowered& l, const std::vector<kernel::Buffer>& globals) {
    std::vector<kernel::Buffer> copy = globals;
    steps += kernel::simulate(l.kernel, copy).steps;
  });
  EXPECT_LE(steps, 4096 * 16 * 2 + 65 * 13 + 64 * 16 * 8);
}

// Two keys over one row of places, and a count that is no search of its own: what is summed beside it folds every term.
TEST(lower_grad_runs, two_keys_are_searched_apart) {
  Builder b;
  const Tensor key = set_sorted(b.input("key", {30}, Format::i32)), w = b.input("w", {30});
  auto [t] = axes<"t">();
  const Axis x = axis("x", Extent(9)), y = axis("y", Extent(9));
  const auto first = sum(t, masked(Index(x) == Index(key(t)), w(t)));
  b.output(map({x}, first * sum(t, masked(Index(x) + Index(2) == Index(key(t)), w(t) * w(t)))), "z");
  b.output(map({y}, sum(t, where(Index(key(t)) < Index(y), w(t), Scalar(0.0)))), "below");
  const Graph g = b.graph();
  expect_derived(g, {{"key", eval::indices({30}, {0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 11, 12})}});
  EXPECT_EQ(searches(derive(g)), 2);
}
