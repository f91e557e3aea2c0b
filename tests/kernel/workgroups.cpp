// Kernels for a workgroup of many lanes: the same values, no lane races, and every barrier is needed.
#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/kernel/legalize.hpp"

using namespace samples;

namespace {
target::Target lanes(int workgroup, int subgroup) {
  target::Target t = target::cuda_target();
  t.workgroup_limit = workgroup;
  t.lanes = subgroup;
  return t;
}

std::vector<target::Target> targets() { return {lanes(6, 3), lanes(32, 8), lanes(256, 32)}; }

// Every place of a barrier in the block.
void barriers(Block& b, std::vector<std::pair<Block*, size_t>>& out) {
  for (size_t s = 0; s < b.size(); ++s) {
    if (std::holds_alternative<Barrier>(b[s].node)) out.emplace_back(&b, s);
    if (auto* l = std::get_if<Loop>(&b[s].node)) barriers(l->body, out);
    if (auto* i = std::get_if<If>(&b[s].node)) barriers(i->then, out);
  }
}

bool races(const Outcome& o) {
  return std::any_of(o.faults.begin(), o.faults.end(),
                     [](const Fault& f) { return f.kind == Fault::lane_race; });
}

int folds(const Block& b) {
  int n = 0;
  for (auto& s : b) {
    n += std::holds_alternative<Fold>(s.node);
    if (auto* l = std::get_if<Loop>(&s.node)) n += folds(l->body);
  }
  return n;
}

// t[i] = x[i]; then y[i] = t[n - 1 - i]: another lane's element.
Kernel reversal(int64_t n) {
  Kernel k;
  const int x = global(k, "x", {n}, Access::read), y = global(k, "y", {n}, Access::write),
            t = tile(k, "t", {n});
  const Var i = k.fresh("i");
  k.body = {apply({{i, n}}, ref(t, {v(i)}), {ref(x, {v(i)})}, arg(k, 0)),
            apply({{i, n}}, ref(y, {v(i)}), {ref(t, {below(n, v(i))})}, arg(k, 0))};
  return k;
}
} // namespace

TEST(workgroups, every_sample_keeps_its_values_without_lane_races) {
  for (auto& t : targets())
    for (auto& [name, s] : all()) {
      const Kernel k = legalize(s.kernel, t);
      EXPECT_EQ(k.lanes, t.workgroup_limit);
      EXPECT_TRUE(problems(k).empty()) << name << ": " << problems(k)[0];
      std::vector<Buffer> b = s.buffers;
      const Outcome o = simulate(k, b);
      EXPECT_TRUE(o.clean()) << name << ": " << text(o) << print(k);
      Sample loose = s;
      loose.tolerance = std::max(s.tolerance, 2e-6); // partial results are kept in f32
      EXPECT_EQ(differences(loose, b), "") << name;
      EXPECT_EQ(print(legalize(k, t)), print(k)) << name;
    }
}

TEST(workgroups, a_barrier_less_is_a_lane_race) {
  int tried = 0,
      for_globals = 0; // the latter: other globals were read, and might share memory with what is written
  for (auto& t : targets())
    for (auto& [name, s] : all()) {
      Kernel k = legalize(s.kernel, t);
      std::vector<std::pair<Block*, size_t>> at;
      barriers(k.body, at);
      for (auto& [block, n] : at) {
        const Stmt taken = (*block)[n];
        block->erase(block->begin() + long(n));
        std::vector<Buffer> b = s.buffers;
        const bool raced = races(simulate(k, b));
        if (!raced && name == "ragged" && n == 2)
          ++for_globals;
        else
          EXPECT_TRUE(raced) << name << ", " << t.workgroup_limit << " lanes, barrier " << n << "\n"
                             << print(k);
        block->insert(block->begin() + long(n), taken);
        ++tried;
      }
    }
  EXPECT_GE(tried, 60);
  EXPECT_EQ(for_globals, int(targets().size()));
}

TEST(workgroups, lanes_meet_where_one_reads_what_another_wrote) {
  const Kernel k = legalize(reversal(100), lanes(32, 32));
  ASSERT_EQ(k.body.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Barrier>(k.body[1].node));
  std::vector<Buffer> b{reals(100, 1), empty_reals(100)};
  EXPECT_TRUE(simulate(k, b).clean());
  Kernel bare = k;
  bare.body.erase(bare.body.begin() + 1);
  const Outcome o = simulate(bare, b);
  EXPECT_TRUE(races(o)) << text(o);
}

TEST(workgroups, long_folds_with_few_points_are_shared_in_levels) {
  for (auto& m : monoids())
    for (int64_t rows : {1, 3, 21})
      for (int64_t columns : {31, 32, 77, 1000})
        for (int vector : {0, 1}) { // 0: terms keep their order
          Sample s = row_fold(m, {rows, columns, rows, 1, vector});
          s.tolerance = 2e-6; // partial results are kept in f32
          target::Target t = lanes(64, 8);
          t.exchanges = false;
          const Kernel k = legalize(s.kernel, t);
          EXPECT_EQ(folds(k.body) > 1, columns >= 32) << rows << " x " << columns;
          std::vector<Buffer> b = s.buffers;
          EXPECT_EQ(text(simulate(k, b)), "") << m.name;
          EXPECT_EQ(differences(s, b), "") << m.name << " " << rows << " x " << columns << "\n" << print(k);
        }
}

// Teams of 2, 4, 8 lanes, and of several subgroups that meet in shared memory.
TEST(workgroups, lanes_of_a_team_join_partial_folds) {
  for (auto& m : monoids())
    for (auto [rows, block] : {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {16, 8}, {21, 8}})
      for (int64_t columns : {9, 16, 31, 77, 300, 1000}) {
        Sample s = row_fold(m, {rows, columns, block, 1, 1});
        s.tolerance = 2e-6;
        target::Target t = lanes(64, 8);
        t.exchanges = true;
        const Kernel k = legalize(s.kernel, t);
        EXPECT_TRUE(problems(k).empty()) << problems(k)[0] << "\n" << print(k);
        std::vector<Buffer> b = s.buffers;
        EXPECT_EQ(text(simulate(k, b)), "") << m.name << "\n" << print(k);
        EXPECT_EQ(differences(s, b), "") << m.name << " " << rows << " x " << columns << "\n" << print(k);
      }
}

// What is given back is in the order of terms: the first share comes first.
TEST(workgroups, shares_join_in_order) {
  for (int64_t columns : {40, 100, 513}) {
    Monoid last{"sum", {Type::real}, {expr::real(-1)}, [](auto& a, auto& b) {
                  return std::vector<E>{expr::select(b[0] == expr::lit_like(b[0], -1), a[0], b[0])};
                }};
    Sample s = row_fold(last, {2, columns, 2, 1, 0});
    for (int64_t r = 0; r < 2; ++r) s.want[1].r[size_t(r)] = s.buffers[0].r[size_t((r + 1) * columns - 1)];
    std::vector<Buffer> b = s.buffers;
    const Kernel k = legalize(s.kernel, lanes(64, 8));
    EXPECT_TRUE(simulate(k, b).clean());
    EXPECT_EQ(b[1].r, s.want[1].r) << columns;
  }
}

TEST(workgroups, a_global_is_not_overwritten_before_every_lane_has_read_the_others) {
  Kernel k; // s = sum x; y[i] = s: y may lie where x was
  const int x = global(k, "x", {8}, Access::read), y = global(k, "y", {8}, Access::write);
  const Var i = k.fresh("i"), j = k.fresh("j");
  k.body = {apply({{i, 8}}, ref(y, {v(i)}), {ref(x, {v(i)})}, arg(k, 0)),
            apply({{j, 4}}, ref(y, {v(j)}), {ref(x, {v(j, 2)})}, arg(k, 0))};
  const Kernel out = legalize(k, lanes(4, 2));
  ASSERT_EQ(out.body.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Barrier>(out.body[1].node));
}

TEST(workgroups, tiles_that_do_not_fit_are_refused) {
  target::Target t = lanes(32, 32);
  t.fast_memory = 4 * 100 - 4;
  const auto r = try_legalize(reversal(100), t);
  ASSERT_FALSE(r);
  EXPECT_NE(r.why().find("400 bytes"), std::string::npos) << r.why();
  EXPECT_FALSE(try_legalize(legalize(reversal(8), lanes(4, 2)), target::c_target(4, 1)));
}
