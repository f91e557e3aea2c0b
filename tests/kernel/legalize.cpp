// Legal kernels compute the same values, hold only what the target has, and pass the checker.
#include "tang/kernel/legalize.hpp"

#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/kernel/check.hpp"

using namespace samples;

namespace {
template <class T>
int count(const Block& b) {
  int n = 0;
  for (auto& s : b) {
    n += std::holds_alternative<T>(s.node);
    if (auto* l = std::get_if<Loop>(&s.node)) n += count<T>(l->body);
    if (auto* i = std::get_if<If>(&s.node)) n += count<T>(i->then);
    if (auto* p = std::get_if<Pipeline>(&s.node)) n += count<T>(p->operands) + count<T>(p->body);
  }
  return n;
}
}  // namespace

TEST(legalize, the_c_target_gets_loops_without_barriers_and_the_same_values) {
  for (int lanes : {4, 16})
    for (auto& [name, s] : all()) {
      const Kernel k = legalize(s.kernel, target::c_target(lanes, 1));
      EXPECT_EQ(count<Pipeline>(k.body) + count<Barrier>(k.body), 0) << name;
      EXPECT_EQ(count<Fold>(k.body) > 0, count<Fold>(s.kernel.body) > 0) << name;
      EXPECT_TRUE(problems(k).empty()) << name << ": " << problems(k)[0];
      std::vector<Buffer> b = s.buffers, plain = s.buffers;
      EXPECT_TRUE(simulate(k, b).clean()) << name;
      EXPECT_TRUE(simulate(s.kernel, plain).clean()) << name;
      EXPECT_EQ(differences(s, b), "") << name;
      for (size_t x = 0; x < b.size(); ++x)  // the order of every fold is the same: so are the bits
        for (size_t e = 0; e < b[x].r.size(); ++e)
          EXPECT_TRUE(b[x].r[e] == plain[x].r[e] || std::isnan(b[x].r[e])) << name;
    }
}
TEST(legalize, it_is_idempotent) {
  for (auto& [name, s] : all()) {
    const Kernel once = legalize(s.kernel, target::c_target(8, 1));
    EXPECT_EQ(print(legalize(once, target::c_target(8, 1))), print(once)) << name;
  }
}
TEST(legalize, register_blocks_fit_and_keep_what_the_schedule_set) {
  for (int lanes : {4, 8, 16}) {
    const target::Target t = target::c_target(lanes, 1);
    Contract c;
    c.m = {{0, 48}};
    c.n = {{1, 64}};
    c.k = {{2, 32}};
    choose_block(c, t);
    EXPECT_LE(registers(c), t.vector_registers);
    EXPECT_GE(c.rows * c.vectors, t.vector_registers / 2);
    EXPECT_LE(c.vectors * lanes, 64);
  }
  const Kernel k = legalize(matmul().kernel, target::c_target(4, 1));
  for (auto& s : std::get<Loop>(k.body[1].node).body)
    if (auto* c = std::get_if<Contract>(&s.node)) {
      EXPECT_EQ(c->rows, 4);  // what the sample says
      EXPECT_EQ(c->vectors, 1);
    }
}
TEST(legalize, vectors_lie_along_contiguous_axes) {
  const Kernel k = legalize(flash().kernel, target::c_target(4, 1));
  EXPECT_EQ(std::get<Apply>(k.body[0].node).vector, 1);                   // q tile: columns
  EXPECT_EQ(std::get<Apply>(k.body[1].node).vector, 0);                   // a row statistic: rows
  const auto& loop = std::get<Loop>(k.body[7].node).body;
  EXPECT_EQ(std::get<Apply>(loop[0].node).vector, -1); // the transposed copy of keys: neither
  EXPECT_EQ(std::get<Apply>(legalize(gather().kernel, target::c_target(4, 1)).body[0].node).vector, -1);
}
TEST(legalize, a_workgroup_of_broken_subgroups_is_refused_with_the_reason) {
  target::Target t = target::c_target(4, 1);
  t.name = "other";
  t.workgroup_limit = 250;
  const auto r = try_legalize(map().kernel, t);
  ASSERT_FALSE(r);
  EXPECT_NE(r.why().find("other"), std::string::npos);
  EXPECT_THROW(legalize(map().kernel, t), Error);
}
