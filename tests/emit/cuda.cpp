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

// NVRTC 13.0 ends its process on this text (a null pointer, signed digits of 32 bits in a loop of 64); other versions
// compile it. The printers write no such digits, and this process lives on either way.
TEST(cuda, a_compiler_that_crashes_is_an_error) {
  auto compiler = device::CudaCompiler::find();
  if (!compiler) GTEST_SKIP() << compiler.why();
  const std::string text = R"(extern "C" __global__ void k(const float* const a, float* const b) {
  const int lane = (int)threadIdx.x;
  const long long x0 = (long long)blockIdx.x * 8;
  for (long long x1 = 0; x1 < 5; x1 += 1) {
    for (int p = lane; p < 48; p += 256) {
      const long long x2 = p / 48, x3 = (p / 8) % 6, x4 = p % 8;
      if (-x0 - x2 * 8 - x4 + 3 >= 0) b[x2 * 48 + x4 + x3 * 8] = a[x0 * 5 + x1 + x2 * 40 + x4 * 5 + x3 * 20];
    }
  }
})";
  try {
    EXPECT_GT((*compiler)->compile(text, "sm_90a").size(), 1000u);
  } catch (const device::CudaError& e) {
    EXPECT_EQ(e.kind(), device::CudaError::failed);
    EXPECT_NE(std::string(e.what()).find("signal 11"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("13.0"), std::string::npos) << e.what();
  }
  EXPECT_GT((*compiler)->compile("extern \"C\" __global__ void f() {}", "sm_90a").size(), 1000u);
}

TEST(cuda, a_machine_without_a_gpu_says_why) {
  const auto gpu = device::Cuda::find(1000);
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.why(), "");
  EXPECT_THROW(device::Cuda::open(1000), device::CudaError);
}
