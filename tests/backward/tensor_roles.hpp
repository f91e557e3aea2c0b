// What tests of gradients in tensor form share: role programs beside their kernels.
#pragma once
#include "lower/role_runs.hpp"
#include "tang/kernel/simulate_roles.hpp"

namespace tang::test {

// For some orders of events the role program does what its kernel says.
inline void expect_roles(const lower::Lowered& l, const target::Roles& fields,
                         const std::vector<kernel::Buffer>& before, uint64_t orders = 4) {
  const auto p = kernel::expand_roles(l.kernel, fields);
  ASSERT_TRUE(bool(p)) << p.why();
  std::vector<kernel::Buffer> want = before;
  EXPECT_TRUE(kernel::simulate(l.kernel, want).clean());
  for (uint64_t seed = 0; seed < orders; ++seed) {
    kernel::RoleOptions o;
    o.seed = seed;
    o.copies = seed == 1 ? kernel::RoleOptions::early : kernel::RoleOptions::late;
    o.workgroups = 1 + int(seed % 2); // one: every block of work goes through the same rings
    std::vector<kernel::Buffer> got = before;
    const auto fault = kernel::simulate_roles(*p, got, o);
    EXPECT_FALSE(fault) << l.label << ": " << kernel::word(fault->kind) << ": " << fault->text;
    EXPECT_LT(difference(want, got), 1e-2) << l.label << " " << l.schedule;
  }
}

} // namespace tang::test
