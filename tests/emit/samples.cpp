// The kernels that the simulator knows, compiled: equal to plain loops, inside their buffers, the same bits
// everywhere.
#include <gtest/gtest.h>

#include "machine.hpp"

using namespace samples;

namespace {
void expect_right(std::vector<std::pair<std::string, Sample>> all, const std::string& stem,
                  double tolerance) {
  std::vector<Kernel*> kernels;
  for (auto& s : all) kernels.push_back(&s.second.kernel);
  machine::name_all(kernels, stem);
  auto gcc = machine::build(kernels), clang = machine::build(kernels, {}, "clang");
  for (auto& [name, s] : all) {
    s.tolerance = tolerance;
    const machine::Run a = machine::launch(s.kernel, *gcc, s.buffers),
                       b = machine::launch(s.kernel, *clang, s.buffers);
    EXPECT_EQ(differences(s, a.buffers), "") << name << " " << s.kernel.name;
    EXPECT_EQ(a.trespass, "") << name;
    EXPECT_TRUE(machine::same_bits(a.buffers, b.buffers)) << name << " differs between gcc and clang";
  }
}
} // namespace

TEST(samples, every_sample_equals_plain_loops) { expect_right(all(), "sample", 4e-5); }

TEST(samples, f64_kernels_too) {
  auto s = all();
  for (auto& x : s) x.second.kernel.compute = Format::f64;
  expect_right(std::move(s), "wide", 3e-6);
}

TEST(samples, folds_of_every_monoid_over_odd_sizes_with_every_vector_choice) {
  std::vector<std::pair<std::string, Sample>> all;
  for (auto& m : monoids())
    for (int64_t columns : {1, 67})
      for (int vector : {-1, 0, 1})
        for (int ways : {1, 3}) {
          if (columns == 1 && ways == 3) continue;
          RowFold f;
          f.rows = 37, f.columns = columns, f.block = 24, f.vector = vector, f.ways = ways;
          all.emplace_back(m.name + " of " + std::to_string(columns) + " vector " + std::to_string(vector) +
                               " ways " + std::to_string(ways),
                           row_fold(m, f));
        }
  expect_right(std::move(all), "fold", 1e-5);
}

TEST(samples, sizes_around_the_block) {
  std::vector<std::pair<std::string, Sample>> all;
  for (int64_t n : {1, 63, 64, 65, 128}) all.emplace_back("map", map(n));
  for (int64_t n : {1, 9, 33}) {
    all.emplace_back("flash", flash({n, n, 4, 8, 4}));
    all.emplace_back("flash, fewer keys", flash({n, (n + 1) / 2, 4, 8, 4}));
    all.emplace_back("matmul", matmul({n, n + 1, n + 2, 8, 8, 4, 4}));
  }
  expect_right(std::move(all), "size", 2e-5);
}

TEST(samples, buffers_of_narrow_formats_round_once) {
  for (Format f : {Format::bf16, Format::f16}) {
    Sample s = map();
    s.kernel.memories[0].format = s.kernel.memories[1].format = f;
    s.kernel.name = "narrow";
    std::vector<Buffer> rounded = s.buffers;
    for (auto& v : rounded[0].r) v = expr::rounded(v, f);
    std::vector<Buffer> want = rounded;
    Options o;
    o.rounded = true;
    ASSERT_TRUE(simulate(s.kernel, want, o).clean());
    auto lib = machine::build({&s.kernel});
    const machine::Run got = machine::launch(s.kernel, *lib, rounded);
    int apart = 0;
    for (size_t i = 0; i < want[1].r.size(); ++i) {
      const double w = want[1].r[i], g = got.buffers[1].r[i],
                   ulp = std::ldexp(1.0, std::ilogb(w == 0 ? 1 : w) - expr::row(f).mantissa);
      EXPECT_LE(std::fabs(w - g), ulp) << i;
      apart += w != g;
    }
    EXPECT_LE(apart, 5); // an elementary function may fall on the other side of a tie
  }
}
