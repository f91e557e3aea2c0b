// Every sample compiles for a GPU as one unit of CUDA, without one; skipped where NVRTC is not installed.
#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/device/cuda.hpp"
#include "tang/emit/cuda.hpp"
#include "tang/kernel/legalize.hpp"

using namespace samples;

TEST(cuda, every_sample_compiles_in_one_unit_in_f32_and_f64) {
  std::vector<Kernel> kernels;
  for (Format compute : {Format::f32, Format::f64})
    for (auto& [name, s] : all()) {
      Kernel k = s.kernel;
      k.compute = compute;
      kernels.push_back(legalize(k, target::cuda_target()));
      kernels.back().name = "k" + std::to_string(kernels.size());
    }
  for (Format f : {Format::f16, Format::bf16, Format::tf32, Format::e4m3, Format::e5m2}) {
    Sample s = map();
    s.kernel.memories[0].format = s.kernel.memories[1].format = f;
    kernels.push_back(legalize(s.kernel, target::cuda_target()));
    kernels.back().name = "k" + std::to_string(kernels.size());
  }
  std::vector<const Kernel*> all_;
  for (auto& k : kernels) all_.push_back(&k);
  const std::string unit = emit::cuda_unit(all_);
  for (auto& k : kernels)
    EXPECT_NE(unit.find(") " + k.name + "("), std::string::npos);
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << compiler.why();
  EXPECT_GT((*compiler)->compile(unit, "sm_90a").size(), 1000u);
  try {
    (*compiler)->compile("extern \"C\" __global__ void f() { g(); }", "sm_90a");
    ADD_FAILURE() << "an undeclared function was accepted";
  } catch (const device::CudaError& e) {
    EXPECT_EQ(e.kind(), device::CudaError::rejected);
    EXPECT_NE(e.facts().at(0).text.find("\"g\" is undefined"), std::string::npos) << e.facts().at(0).text;
  }
}

TEST(cuda, a_machine_without_a_gpu_says_why) {
  const auto gpu = device::Cuda::find(1000);
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.why(), "");
  EXPECT_THROW(device::Cuda::open(1000), device::CudaError);
}
