// The kernels of the builders fit a GPU, and those of each builder's first graph compile without one; skipped
// where NVRTC is not installed.
#include "tang/emit/cuda.hpp"
#include "tang/models/cases.hpp"
#include "run/harness.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

TEST(cuda, kernels_of_the_builders_fit_and_compile) {
  std::vector<run::Derivation> all;
  std::vector<size_t> first;
  for (auto& c : cases::builders) {
    first.push_back(all.size());
    c.run({[&](const ir::Graph& g, eval::Inputs, double) {
      all.push_back(run::derive(g, run::cuda_options()));
    }});
  }
  std::vector<const kernel::Kernel*> kernels;
  for (auto& d : all)
    for (auto& l : d.kernels.kernels) {
      EXPECT_LE(l.kernel.lanes, 256) << l.label;
      EXPECT_EQ(l.kernel.lanes % 32, 0) << l.label;
      EXPECT_LE(emit::cuda_shared_bytes(l.kernel), run::cuda_options().target.fast_memory) << l.label;
      EXPECT_NE(emit::cuda(l.kernel), "");
    }
  for (size_t d : first)
    for (auto& l : all[d].kernels.kernels) kernels.push_back(&l.kernel);
  EXPECT_GE(kernels.size(), 90u);
  const std::string unit = emit::cuda_unit(kernels);
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << compiler.why();
  EXPECT_GT((*compiler)->compile(unit, "sm_90a").size(), unit.size() / 10);
}
