// Counting sorted keys by halving: right for rows of every length, in as many steps as halving takes, and
// refused where it is no such count.
#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/kernel/legalize.hpp"

using namespace samples;

namespace {
Fold& fold(Kernel& k) { return std::get<Fold>(k.body[0].node); }

std::string problem(const std::function<void(Kernel&)>& change) {
  Sample s = first_of_runs();
  change(s.kernel);
  const auto all = problems(s.kernel);
  return all.empty() ? "" : all[0];
}
} // namespace

TEST(search, rows_of_every_length) {
  for (int64_t keys : {0, 1, 2, 3, 7, 8, 9, 64})
    for (int64_t places : {1, 4, 9}) {
      const Sample s = first_of_runs(keys, places);
      std::vector<Buffer> b = s.buffers;
      const Outcome out = simulate(s.kernel, b);
      EXPECT_EQ(text(out), "") << keys << " keys, " << places << " places";
      EXPECT_EQ(differences(s, b), "") << keys << " keys, " << places << " places";
    }
}

// 100 places among 1000 keys: ten of them are read for a place, not all, in the simulator and in the estimate.
TEST(search, a_place_reads_as_many_keys_as_halving_does) {
  const Sample s = first_of_runs(1000, 100);
  std::vector<Buffer> b = s.buffers;
  const Outcome out = simulate(s.kernel, b);
  EXPECT_EQ(differences(s, b), "");
  EXPECT_LE(out.memory[0].loads, 100 * 10);
  EXPECT_GE(out.memory[0].loads, 100 * 8);
  EXPECT_EQ(traffic(s.kernel, 1).loaded_of[0], 100 * 10 * 4);
}

TEST(search, what_is_no_count_of_one_axis_is_refused) {
  EXPECT_EQ(problem([](Kernel&) {}), "");
  EXPECT_NE(problem([](Kernel& k) { fold(k).accumulate = true; }).find("counts terms of one axis"), std::string::npos);
  EXPECT_NE(problem([](Kernel& k) { fold(k).identity[0].i = 1; }).find("counts terms of one axis"), std::string::npos);
  EXPECT_NE(problem([](Kernel& k) { fold(k).folded.push_back({k.fresh("u"), 2}); }).find("counts terms of one axis"),
            std::string::npos);
  EXPECT_NE(problem([](Kernel& k) { fold(k).limits = {at(v(fold(k).folded[0].var))}; }).find("no limits"), std::string::npos);
  EXPECT_NE(problem([](Kernel& k) { fold(k).ways = 2; }).find("lanes of a search"), std::string::npos);
}

// Neither vectors nor lanes that share terms: each lane searches for a point of its own.
TEST(search, lanes_are_points_on_every_target) {
  for (const target::Target& t : {target::c_target(8, 2), target::cuda_target()}) {
    Kernel k = legalize(first_of_runs(4000, 64).kernel, t);
    EXPECT_EQ(fold(k).vector, -1);
    EXPECT_TRUE(fold(k).search);
    EXPECT_EQ(k.body.size(), 1u);
  }
}
