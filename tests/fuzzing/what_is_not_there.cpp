// Elements that are absent, axes without elements, and kernels whose tiles are more than a workgroup has: what
// campaigns found, asked directly.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "fuzzing/targets.hpp"
#include "tang/fuzz/batch.hpp"
#include "tang/ir/absence.hpp"
#include "tang/kernel/check.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::fuzz;

namespace {
Case found(const std::string& name) {
  std::ifstream in(TANG_SOURCE "/tests/fuzzing/found/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return case_of(text.str(), name);
}
} // namespace

TEST(what_is_not_there, absence_counts_as_its_reader_says) {
  ir::Graph g = text::parse(R"(exact
input x[8] : f32
bound[i: 8] = x[i] where i <= 4
predicate[i: 8] = only(x[i] < 0, x[i])
reader[i: 8] = bound[i] + 1
caught[i: 8] = or_else(predicate[i], 0)
beside[i: 8] = predicate[i] + or_else(bound[i], 0)
pairs[i: 4] = x[i] to [i] as [2*i : 8]
of_pairs[i: 8] = pairs[i] + 1
output bound
output predicate
output reader
output caught
output beside
output of_pairs
)",
                            "absence.tang");
  auto says = [&](const std::string& name, unsigned counted) {
    for (auto& o : g.outputs)
      if (o.name == name) return ir::may_be_absent(g, o.port, counted);
    ADD_FAILURE() << name;
    return false;
  };
  struct Row {
    const char* name;
    bool views, predicates, domains;
  };
  for (const Row& r : {Row{"bound", false, false, false}, Row{"predicate", false, true, false},
                       Row{"reader", false, false, true}, Row{"caught", false, false, false},
                       Row{"beside", false, true, false}, Row{"of_pairs", true, true, true}}) {
    EXPECT_EQ(says(r.name, ir::by_views), r.views) << r.name;
    EXPECT_EQ(says(r.name, ir::by_predicates), r.predicates) << r.name;
    EXPECT_EQ(says(r.name, ir::by_domains_read), r.domains) << r.name;
  }
}

// What has no point touches nothing, in every target's form.
TEST(what_is_not_there, folds_over_nothing_have_no_problem) {
  for (const char* name : {"fold_over_nothing.tang", "empty_arrays_beside_others.tang"})
    for (int lanes : {4, 8, 16})
      for (bool rules : {true, false}) {
        Case c = found(name);
        c.optimize = rules;
        Job j;
        j.c = &c;
        derive(j, lanes == 4 ? target::cuda_target() : (c.lanes = lanes, simulated_row(c)));
        ASSERT_TRUE(j.derivation) << name << (j.faults.empty() ? "" : j.faults[0].what);
        for (auto& l : j.derivation->kernels.kernels)
          for (auto& p : kernel::problems(l.kernel)) ADD_FAILURE() << name << ", " << l.label << ": " << p;
      }
}

// Tiles are cut, register blocks narrowed, and what is evaluated again for a tile is stored, until it fits.
TEST(what_is_not_there, kernels_fit_the_memory_of_the_least_workgroup) {
  for (const char* name :
       {"shared_products_beyond_a_workgroups_memory.tang", "wide_register_blocks_in_a_small_memory.tang"}) {
    const Case c = found(name);
    target::Facts f;
    f.workgroup = 64, f.f64 = true;
    for (int64_t bytes : {32 << 10, 16 << 10, 12 << 10}) {
      f.shared_bytes = bytes;
      Job j;
      j.c = &c;
      derive(j, target::gpu_target("opencl", f));
      EXPECT_TRUE(j.derivation) << name << ", " << bytes << ": "
                                << (j.faults.empty() ? "refused" : j.faults[0].what);
    }
  }
}
