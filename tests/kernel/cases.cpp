// Cases that are about kernels: every width of a subgroup sums alike, a shared place has one writer.
#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/legalize.hpp"

using namespace samples;

namespace {
target::Target lanes(int workgroup, int subgroup, bool exchanges) {
  target::Target t = target::cuda_target();
  t.workgroup_limit = workgroup;
  t.lanes = subgroup;
  t.exchanges = exchanges;
  return t;
}
} // namespace

TEST(kernel_cases, case_95_every_width_of_a_subgroup_sums_the_same_integers) {
  for (int workgroup : {128, 256})
    for (int subgroup : {8, 16, 32, 64})
      for (bool exchanges : {false, true})
        for (int vector : {0, 1}) {
          Sample s = row_fold(monoids()[0], {1, 1000, 1, 1, vector});
          for (size_t k = 0; k < 1000; ++k) s.buffers[0].r[k] = double(k % 7);
          s.want[1].r[0] = 2997;
          s.tolerance = 0;
          const Kernel k = legalize(s.kernel, lanes(workgroup, subgroup, exchanges));
          std::vector<Buffer> b = s.buffers;
          EXPECT_EQ(text(simulate(k, b)), "") << workgroup << " of " << subgroup;
          EXPECT_EQ(differences(s, b), "") << workgroup << " of " << subgroup << "\n" << print(k);
        }
}

// Lanes that write the same value to one shared place race all the same.
TEST(kernel_cases, case_45_equal_values_written_by_two_lanes_are_a_race) {
  Kernel k = legalize(row_fold(monoids()[0], {1, 64, 1, 1, 0}).kernel, lanes(32, 8, false));
  const int shared = tile(k, "one", {1});
  const Var i = k.fresh("i");
  Stmt each = apply({{i, 8}}, ref(shared, {constant(0)}), {}, lit(k, 3));
  k.body.insert(k.body.begin(), each);
  std::vector<Buffer> b = row_fold(monoids()[0], {1, 64, 1, 1, 0}).buffers;
  const Outcome o = simulate(k, b);
  EXPECT_TRUE(!problems(k).empty() ||
              std::any_of(o.faults.begin(), o.faults.end(), [](const Fault& f) { return f.kind == Fault::lane_race; }))
      << text(o) << print(k);
}
