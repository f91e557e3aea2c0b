// Static costs against what the simulator counts, and against numbers worked out by hand.
#include "tang/kernel/analyze.hpp"

#include <gtest/gtest.h>

#include "kernel/samples.hpp"

using namespace samples;

TEST(analyze, global_bytes_equal_what_the_simulator_counts) {
  for (auto& [name, s] :
       std::vector<std::pair<std::string, Sample>>{{"map", map()},
                                                   {"matmul", matmul({37, 44, 29, 16, 16, 8, 4})},
                                                   {"flash", flash()},
                                                   {"flash of one block", flash({5, 5, 4, 8, 4})},
                                                   {"sum", row_fold(monoids()[0])},
                                                   {"welford", row_fold(monoids()[5])}}) {
    std::vector<Buffer> b = s.buffers;
    const Outcome o = simulate(s.kernel, b);
    const Traffic t = traffic(s.kernel);
    EXPECT_TRUE(t.exact) << name;
    for (size_t m = 0; m < s.kernel.memories.size(); ++m) {
      if (s.kernel.memories[m].home != Home::global) continue;
      const int64_t size = row(s.kernel.memories[m].format).bits / 8;
      EXPECT_EQ(t.loaded_of[m], o.memory[m].loads * size) << name << " " << s.kernel.memories[m].name;
      EXPECT_EQ(t.stored_of[m], o.memory[m].stores * size) << name << " " << s.kernel.memories[m].name;
    }
  }
}
TEST(analyze, register_blocks_save_tile_reads_as_the_simulator_counts) {
  for (int rows : {1, 4, 6})
    for (int vectors : {1, 2}) {
      Sample s = matmul();
      auto& c = std::get<Contract>(std::get<Pipeline>(s.kernel.body[1].node).body[0].node);
      c.rows = rows;
      c.vectors = vectors;
      std::vector<Buffer> b = s.buffers;
      Options o;
      o.lanes = 4;
      const Outcome out = simulate(s.kernel, b, o);
      const Traffic t = traffic(s.kernel, 4);
      for (size_t m : {3, 4, 5}) {
        EXPECT_EQ(t.loaded_of[m], out.memory[m].loads * 4) << rows << " " << vectors << " " << m;
        EXPECT_EQ(t.stored_of[m], out.memory[m].stores * 4);
      }
    }
}
TEST(analyze, matmul_by_hand) {
  const Traffic t = traffic(matmul({64, 64, 32, 16, 32, 8, 4}).kernel);
  EXPECT_EQ(t.loaded_of[0], 64 * 32 * 4 * 2);  // A once for each of 64 / 32 column blocks
  EXPECT_EQ(t.loaded_of[1], 32 * 64 * 4 * 4);  // B once for each of 64 / 16 row blocks
  EXPECT_EQ(t.stored[0], 64 * 64 * 4);
  EXPECT_EQ(t.flops, 2 * 64 * 64 * 32);
  EXPECT_EQ(t.special, 0);
}
TEST(analyze, a_bound_over_two_axes_counts_whole_panels) {
  EXPECT_EQ(traffic(matmul({16, 44, 8, 16, 16, 8, 4}).kernel).loaded_of[1], 8 * 44 * 4);
  EXPECT_EQ(traffic(matmul({16, 45, 8, 16, 16, 8, 4}).kernel).loaded_of[1],
            8 * 48 * 4); // 45 columns: 12 panels of 4
}
TEST(analyze, blocks_outside_the_domain_are_not_counted) {
  const Traffic t = traffic(flash({64, 64, 8, 16, 16}).kernel);
  EXPECT_EQ(t.loaded_of[1], (1 + 2 + 3 + 4) * 16 * 8 * 4);  // keys: 10 of 16 blocks
  const Traffic half = traffic(flash({64, 16, 8, 16, 16}).kernel);
  EXPECT_EQ(half.loaded_of[1], 4 * 16 * 8 * 4);
}
TEST(analyze, a_bound_that_depends_on_data_is_not_exact) {
  EXPECT_FALSE(traffic(ragged().kernel).exact);
}
TEST(analyze, contiguous_axes_and_vector_widths) {
  auto width_of = [](const Kernel& k, size_t statement_operand) { return uses(k)[statement_operand]; };
  const Kernel k = map(1024, 64).kernel;
  EXPECT_EQ(width_of(k, 0).axis, 0);
  EXPECT_EQ(width_of(k, 0).width, 16);
  EXPECT_TRUE(width_of(k, 1).writes);
  EXPECT_EQ(width_of(map(1000, 20).kernel, 0).width, 4);  // a block of 20 starts at multiples of 20
  Kernel shifted = k;
  std::get<Apply>(shifted.body[0].node).body.refs[0].index[0].affine.c = 2;
  EXPECT_EQ(width_of(shifted, 0).width, 2);
  Kernel odd =
      row_fold(monoids()[0]).kernel; // rows of 37: the column is contiguous, no row but the first is aligned
  EXPECT_EQ(width_of(odd, 0).axis, 1);
  EXPECT_EQ(width_of(odd, 0).width, 1);
  RowFold f;
  f.columns = 40;
  EXPECT_EQ(width_of(row_fold(monoids()[0], f).kernel, 0).width, 8);
  EXPECT_EQ(width_of(gather().kernel, 1).axis, -1);  // a gathered row has no known address
}
TEST(analyze, registers_of_a_block) {
  Contract c;
  c.rows = 12;
  c.vectors = 2;
  EXPECT_EQ(registers(c), 27);
}
