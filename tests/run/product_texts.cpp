// Texts of products: instructions of each format, copies of boxes; they compile for sm_90a without
// complaints.
#include <gtest/gtest.h>

#include "tang/models/conv.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
ir::Graph narrow(ir::Format f) {
  ir::Builder b;
  ir::Tensor x = b.input("a", {512, 768}, f), y = b.input("b", {1024, 768}, f);
  auto [i, j, k] = ir::axes<"i j k">();
  const bool whole = expr::type_of(f) == expr::Type::index;
  const ir::Scalar p = whole ? ir::to_real(x(i, k)) * ir::to_real(y(j, k)) : x(i, k) * y(j, k);
  b.output(ir::map({i, j}, ir::sum(k, p)), "out", ir::Format::bf16);
  return b.graph();
}

ir::Graph conv(int64_t size, int64_t channels, int64_t outs, int64_t taps, int64_t stride) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {32, size, size, channels}, ir::Format::bf16),
             w = b.input("w", {outs, taps, taps, channels}, ir::Format::bf16);
  models::Conv o;
  o.stride = {stride}, o.pad = {taps / 2}, o.channels_last = true;
  b.output(models::conv2d(x, w, {}, o), "out", ir::Format::bf16);
  return b.graph();
}

std::string text_of(const ir::Graph& g) {
  const run::Options o = run::hopper_options();
  const auto d = run::derive(g, o);
  for (auto& l : d.kernels.kernels) EXPECT_TRUE(l.roles) << l.refused;
  return run::cuda_source(d, o.target);
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }
} // namespace

TEST(product_texts, each_format_has_its_instruction) {
  const std::string whole = text_of(narrow(ir::Format::i8)), small = text_of(narrow(ir::Format::e4m3));
  EXPECT_TRUE(has(whole, "k32.s32.s8.s8 "));
  EXPECT_TRUE(has(whole, ", p;")); // no signs, no transposes
  EXPECT_TRUE(has(whole, "tang_whole(m3, i3);")); // integers have registers of their own until the end
  EXPECT_TRUE(has(small, "k32.f32.e4m3.e4m3 "));
  EXPECT_TRUE(has(small, ", p, 1, 1;"));
  EXPECT_FALSE(has(small, "tang_whole(m"));
}

TEST(product_texts, a_convolution_copies_one_box_of_the_image_a_tap) {
  const std::string t = text_of(conv(14, 64, 64, 3, 2)); // results are 7 x 7, 2 places apart
  EXPECT_TRUE(has(t, " * 2 + x")); // of the image's lines: where a result's window begins
  size_t loads = 0;
  for (size_t at = 0; (at = t.find("    tang_bulk_load(", at)) != std::string::npos; ++at) ++loads;
  EXPECT_EQ(loads, 2u); // the image, the filter
}

// All that a lane loads of a small grid is on its way at once: the compiler is told how many workgroups share a processor.
TEST(product_texts, few_rows_go_from_memory_to_registers) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {8, 2048}, ir::Format::bf16), w = b.input("w", {1024, 2048}, ir::Format::bf16);
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, x(i, k) * w(j, k))), "y", ir::Format::bf16);
  const run::Options o = run::hopper_options();
  const std::string t = run::cuda_source(run::derive(b.graph(), o), o.target);
  EXPECT_TRUE(has(t, "__launch_bounds__(128, 1)"));
  EXPECT_TRUE(has(t, "tang_multiply_bf16(c0[m][n], q"));
  EXPECT_FALSE(has(t, "tang_bulk_load("));
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << "NVRTC is not present: " << compiler.why();
  (*compiler)->compile(t, "sm_90a");
  const std::string& log = (*compiler)->log();
  const size_t at = log.find("Used ");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_GT(std::atoi(log.c_str() + at + 5), 64) << log; // eight steps of two words of four registers
}

TEST(product_texts, a_row_found_by_index_is_loaded_in_runs) {
  ir::Builder b;
  ir::Tensor h = b.input("h", {4, 768}, ir::Format::bf16), w = b.input("w", {16, 2048, 768}, ir::Format::bf16),
             e = b.input("e", {4}, ir::Format::i32);
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, h(i, k) * w(e(i), j, k))), "y", ir::Format::bf16);
  const run::Options o = run::hopper_options();
  const std::string t = run::cuda_source(run::derive(b.graph(), o), o.target);
  EXPECT_TRUE(has(t, "q0 = *(const TangRun<uint16_t, 8>*)(m"));
  EXPECT_TRUE(has(t, "q1 = *(const TangRun<uint16_t, 8>*)(m"));
}

TEST(product_texts, they_compile_clean) {
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << "NVRTC is not present: " << compiler.why();
  for (auto& g :
       {narrow(ir::Format::i8), narrow(ir::Format::e4m3), narrow(ir::Format::e5m2), conv(56, 64, 64, 3, 1),
        conv(28, 128, 256, 3, 2), conv(14, 1024, 256, 1, 1), conv(7, 512, 512, 3, 1)}) {
    (*compiler)->compile(text_of(g), "sm_90a");
    const std::string& log = (*compiler)->log();
    EXPECT_NE(log.find("registers"), std::string::npos) << "the log does not count registers";
    EXPECT_EQ(log.find("C75"), std::string::npos) << log;
    for (size_t at = log.find("bytes spill"); at != std::string::npos; at = log.find("bytes spill", at + 1))
      EXPECT_EQ(log.substr(at - 3, 2), " 0") << log;
  }
}
