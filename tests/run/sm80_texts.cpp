// Kernels of subgroups compile for sm_80 and sm_90a without spills.
#include <gtest/gtest.h>

#include "tang/models/attention.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
ir::Graph product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, ir::Format f) {
  ir::Builder b;
  using Shape = std::vector<ir::Extent>;
  ir::Tensor x = b.input("a", ta ? Shape{k, m} : Shape{m, k}, f), y = b.input("b", tb ? Shape{n, k} : Shape{k, n}, f);
  auto [i, j, l] = ir::axes<"i j l">();
  b.output(ir::map({i, j}, ir::sum(l, (ta ? x(l, i) : x(i, l)) * (tb ? y(j, l) : y(l, j)))), "out", f);
  return b.graph();
}

ir::Graph attention(int64_t n, int64_t d, bool causal) {
  ir::Builder b;
  const std::vector<ir::Extent> shape{1, 16, n, d};
  ir::Tensor q = b.input("q", shape, ir::Format::bf16), k = b.input("k", shape, ir::Format::bf16),
             v = b.input("v", shape, ir::Format::bf16);
  models::AttentionOptions o;
  if (causal) o.mask = models::causal();
  b.output(models::attention(q, k, v, o).out, "out", ir::Format::bf16);
  return b.graph();
}
} // namespace

TEST(sm80_texts, compile_without_spills) {
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << "NVRTC is not present: " << compiler.why();
  std::vector<std::pair<std::string, ir::Graph>> table;
  for (bool ta : {false, true})
    for (bool tb : {false, true}) table.emplace_back("product", product(4096, 4096, 4096, ta, tb, ir::Format::bf16));
  table.emplace_back("ragged product", product(1000, 1000, 1000, false, true, ir::Format::f16));
  table.emplace_back("product of tf32", product(2048, 2048, 2048, false, true, ir::Format::tf32));
  for (int64_t d : {64, 128})
    for (bool causal : {false, true}) table.emplace_back("attention", attention(4096, d, causal));
  const run::Options o = run::ampere_options();
  for (auto& [name, g] : table) {
    const auto d = run::derive(g, o);
    for (auto& l : d.kernels.kernels) EXPECT_TRUE(l.roles && l.roles->tall) << name << ": " << l.refused;
    for (const char* architecture : {"sm_80", "sm_90a"}) {
      (*compiler)->compile(run::cuda_source(d, o.target), architecture);
      const std::string& log = (*compiler)->log();
      EXPECT_NE(log.find("registers"), std::string::npos) << name << ": the log does not count registers";
      for (size_t at = log.find("bytes spill"); at != std::string::npos; at = log.find("bytes spill", at + 1))
        EXPECT_EQ(log.substr(at - 3, 2), " 0") << name << " " << architecture << "\n" << log;
    }
  }
}
