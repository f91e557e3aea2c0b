// Proofs about integers against enumeration: what is proved holds, and the forms that kernels need are
// proved.
#include "tang/kernel/facts.hpp"

#include <gtest/gtest.h>

#include <random>

#include "kernel/samples.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/check.hpp"

using namespace samples;

TEST(facts, what_is_proved_holds_in_every_state) {
  std::mt19937 g(11);
  auto any = [&](int lo, int hi) { return lo + int(g() % unsigned(hi - lo + 1)); };
  int proved = 0, missed = 0, vacuous = 0;
  for (int round = 0; round < 1500; ++round) {
    constexpr int n = 3;
    Facts f;
    int low[n], high[n], step[n];
    for (int v_ = 0; v_ < n; ++v_) {
      low[v_] = any(-2, 1);
      step[v_] = any(1, 3);
      high[v_] = low[v_] + step[v_] * any(0, 4);
      f.define(v_, low[v_], high[v_], {step[v_], floor_mod(low[v_], step[v_])});
    }
    auto form = [&] {
      Affine a = constant(any(-6, 8));
      for (int v_ = 0; v_ < n; ++v_) a = a + variable(v_, any(-3, 3));
      return a;
    };
    const Affine c0 = form(), c1 = form(), e = form(), low_case = form(), high_case = form();
    f.assume(c0);
    f.assume(c1);
    const bool is_min = any(0, 1);  // a variable that is the lesser or greater of two forms
    Kernel k;
    define_let(f, Let{n, is_min ? Let::min : Let::max, {low_case, high_case}, 1, {}}, k);
    const Affine goal = e + variable(n, any(-1, 1));
    const int64_t modulus = any(2, 4);
    const bool claim = f.proves(goal), dead = f.impossible(), multiple = f.multiple(goal, modulus);
    bool all = true, reached = false;
    int64_t x[n + 1];
    auto value = [&](const Affine& a) {
      int64_t s = a.c;
      for (auto& [v_, kk] : a.terms) s += kk * x[v_];
      return s;
    };
    for (x[0] = low[0]; x[0] <= high[0]; x[0] += step[0])
      for (x[1] = low[1]; x[1] <= high[1]; x[1] += step[1])
        for (x[2] = low[2]; x[2] <= high[2]; x[2] += step[2]) {
          const int64_t p = value(low_case), q = value(high_case);
          x[n] = is_min ? std::min(p, q) : std::max(p, q);
          if (multiple) { ASSERT_EQ(floor_mod(value(goal), modulus), 0); }
          if (value(c0) < 0 || value(c1) < 0) continue;
          reached = true;
          all = all && value(goal) >= 0;
        }
    ASSERT_TRUE(all || !claim);
    ASSERT_FALSE(dead && reached);
    proved += claim && reached;
    missed += !claim && all && reached;
    vacuous += !reached;
  }
  EXPECT_GT(proved, 100);
  EXPECT_LT(missed, proved);  // incomplete, but most of what holds is found
}
TEST(facts, loops_that_divide_evenly_end_a_whole_block_before_their_end) {
  Facts f;
  f.define(0, 0, 1 << 20, {64, 0});  // a grid axis
  define_loop(f, 1, constant(0), variable(0) + constant(64), 16);
  EXPECT_TRUE(f.proves(variable(0) + constant(63) - variable(1) - constant(15)));
  EXPECT_FALSE(f.proves(variable(0) + constant(63) - variable(1) - constant(16)));
  EXPECT_TRUE(f.multiple(variable(1), 16));
  EXPECT_FALSE(f.multiple(variable(1), 32));
}

namespace {
// A kernel of one or two copies with random strides, blocks, bounds and offsets; many are wrong.
Kernel random_kernel(std::mt19937& g) {
  auto any = [&](int64_t lo, int64_t hi) { return lo + int64_t(g() % uint64_t(hi - lo + 1)); };
  Kernel k;
  const int64_t n = any(3, 9), m = any(2, 7);
  const int x = global(k, "x", {n, m}, Access::read), y = global(k, "y", {n, m}, Access::read_write);
  if (any(0, 5) == 0) k.memories[size_t(y)].strides = {any(1, m), 1};
  const int t = tile(k, "t", {any(2, 5), any(2, 5)});
  const auto tile_shape = k.memories[size_t(t)].shape;
  const Var i0 = k.fresh("i0"), j0 = k.fresh("j0"), l = k.fresh("l");
  const int64_t si = any(0, 1) ? tile_shape[0] : any(1, 4), sj = any(0, 1) ? tile_shape[1] : any(1, 4);
  k.grid = {{i0, n, si}, {j0, m, sj}};
  auto bounds = [&](const Affine& a, const Affine& b) {
    Bounds out;
    if (any(0, 5)) out.push_back(at(below(n + any(0, 8) / 8, a)));
    if (any(0, 5)) out.push_back(at(below(m + any(0, 8) / 8, b)));
    return out;
  };
  const Var i = k.fresh("i"), j = k.fresh("j");
  const std::vector<TileAxis> axes = {{i, any(0, 5) ? tile_shape[0] : tile_shape[0] + 1}, {j, tile_shape[1]}};
  const Affine gi = v(i0, any(0, 9) ? 1 : any(0, 2)) + v(i) + (any(0, 9) ? 0 : 1),
               gj = v(j0) + v(j, any(0, 9) ? 1 : 2);
  Block body;
  body.push_back(apply(axes, ref(t, {v(i), v(j)}), {ref(x, {gi, gj})}, arg(k, 0), bounds(gi, gj), {},
                       any(0, 4) ? std::optional<Value>(expr::real(0)) : std::nullopt));
  body.push_back(apply(axes, ref(y, {gi, gj}), {ref(t, {v(i), v(j)})}, arg(k, 0), bounds(gi, gj)));
  if (any(0, 3) == 0)
    std::get<Apply>(body.back().node).body.refs.push_back(ref(y, {gi, any(0, 1) ? gj : gj + (-1)}));
  if (any(0, 2) == 0) k.body = {{Loop{l, constant(0), v(i0) + any(0, 2), 1, body}}};
  else if (any(0, 2) == 0) k.body = {{If{{v(i0, -1) + any(0, 2)}, body}}};
  else k.body = body;
  return k;
}
}  // namespace

TEST(check, what_it_accepts_runs_clean_in_every_order) {
  std::mt19937 g(5);
  int accepted = 0, clean_but_refused = 0, faulty = 0;
  for (int round = 0; round < 700; ++round) {
    const Kernel k = random_kernel(g);
    const auto bad = problems(k);
    bool clean = true;
    for (Order order : {Order::forward, Order::random}) {
      std::vector<Buffer> b = {reals(100, 1), reals(100, 2)};
      Options o;
      o.order = order;
      o.seed = unsigned(round);
      const Outcome out = simulate(k, b, o);
      if (bad.empty()) {
        // An element that a bound left out is the simulator's to find: the checker looks at whole tiles.
        for (auto& f : out.faults) ASSERT_EQ(f.kind, Fault::unwritten) << text(out) << print(k);
      }
      clean = clean && out.clean();
    }
    accepted += bad.empty();
    clean_but_refused += !bad.empty() && clean;
    faulty += !clean;
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(faulty, 250);
  EXPECT_LT(clean_but_refused, 150);
}
