// Several arguments in one compute what they did apart; which integers fit 32 bits.
#include "tang/kernel/merge.hpp"

#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/ranges.hpp"

using namespace samples;

// The operands of a product, [37, 29] and [29, 45], one behind the other with a gap of 7: element 37 * 29 + 7 = 1080 is b's
// first.
TEST(merge, joined_operands_of_a_product) {
  Sample s = matmul();
  const int64_t gap = 7, at = 37 * 29 + gap, size = at + 29 * 45;
  const Kernel k = joined(s.kernel, {{0, 0}, {1, at}}, size);
  EXPECT_EQ(k.memories.size() + 1, s.kernel.memories.size());
  EXPECT_TRUE(problems(k).empty()) << problems(k)[0];
  std::vector<Buffer> b = s.buffers;
  b[0].r.resize(size_t(at), samples::nan);
  b[0].r.insert(b[0].r.end(), b[1].r.begin(), b[1].r.end());
  b.erase(b.begin() + 1);
  const Outcome o = simulate(k, b);
  EXPECT_TRUE(o.clean()) << text(o);
  b.insert(b.begin() + 1, s.buffers[1]);
  EXPECT_EQ(differences(s, b), "");
}

TEST(merge, a_map_in_place) {
  Sample s = map(100, 32);
  s.kernel.memories[1].format = Format::f32;
  const auto k = merged(s.kernel, 0, 1);
  ASSERT_TRUE(k) << k.why();
  EXPECT_EQ(k->memories.size(), 1u);
  EXPECT_EQ(k->memories[0].access, Access::read_write);
  std::vector<Buffer> b = {s.buffers[0]};
  EXPECT_TRUE(simulate(*k, b).clean());
  for (size_t n = 0; n < 100; ++n) EXPECT_NEAR(b[0].r[n], s.want[1].r[n], 1e-5);
  EXPECT_FALSE(merged(map().kernel, 0, 1)) << "f32 and f64 do not share a place";
}

TEST(ranges, what_fits_32_bits) {
  EXPECT_FALSE(beyond_32_bits(map().kernel));
  EXPECT_FALSE(beyond_32_bits(flash().kernel));
  Sample s = map();
  for (auto& m : s.kernel.memories) m.shape = {int64_t(1) << 32};
  EXPECT_EQ(beyond_32_bits(s.kernel).value_or(""), "x has more elements than 32 bits count");
  Kernel k = map().kernel; // 1000 * 2^22 > 2^31
  for (auto& t : std::get<Apply>(k.body[0].node).body.refs[0].index[0].affine.terms) t.second = 1 << 22;
  EXPECT_EQ(beyond_32_bits(k).value_or(""), "a coordinate may not fit 32 bits");
}
