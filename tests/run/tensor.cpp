// Kernels of matrix instructions compile for sm_90a without spills, serialized instructions or ignored
// register counts.
#include <gtest/gtest.h>

#include "tang/models/attention.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
constexpr auto bf16 = ir::Format::bf16;

ir::Graph product(int64_t n, bool a_apart, bool b_apart) {
  ir::Builder b;
  ir::Tensor x = b.input("a", {n, n}, bf16), y = b.input("b", {n, n}, bf16);
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, (a_apart ? x(k, i) : x(i, k)) * (b_apart ? y(k, j) : y(j, k)))), "out",
           bf16);
  return b.graph();
}

ir::Graph attention(int64_t n, int64_t d, bool causal) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {1, 16, n, d}, bf16), k = b.input("k", {1, 16, n, d}, bf16),
             v = b.input("v", {1, 16, n, d}, bf16);
  models::AttentionOptions o;
  if (causal) o.mask = models::causal();
  const auto a = models::attention(q, k, v, o);
  b.output(a.out, "out", bf16);
  b.output(a.lse, "lse");
  return b.graph();
}
} // namespace

TEST(tensor, kernels_of_the_table_compile_clean) {
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << "NVRTC is not present: " << compiler.why();
  std::vector<std::pair<std::string, ir::Graph>> table;
  for (int64_t n : {1024, 2048}) table.emplace_back("product " + std::to_string(n), product(n, false, false));
  for (bool a : {false, true}) table.emplace_back("product, operands apart", product(1000, a, true));
  for (bool b : {false, true}) table.emplace_back("product of three teams", product(2000, false, b));
  for (int64_t d : {64, 80, 96, 128, 192, 256})
    for (bool causal : {false, true})
      table.emplace_back("attention " + std::to_string(d),
                         attention(d == 128 && !causal ? 16384 : 1024, d, causal));
  for (auto& [name, g] : table) {
    const run::Options o = run::hopper_options();
    const auto d = run::derive(g, o);
    for (auto& l : d.kernels.kernels) EXPECT_TRUE(l.roles) << name << ": " << l.refused;
    (*compiler)->compile(run::cuda_source(d, o.target), "sm_90a");
    const std::string& log = (*compiler)->log();
    EXPECT_NE(log.find("registers"), std::string::npos) << name << ": the log does not count registers";
    EXPECT_EQ(log.find("C75"), std::string::npos) << name << "\n" << log;
    for (size_t at = log.find("bytes spill"); at != std::string::npos; at = log.find("bytes spill", at + 1))
      EXPECT_EQ(log.substr(at - 3, 2), " 0") << name << "\n" << log;
  }
}
