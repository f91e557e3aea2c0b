// The text of three kernels in every dialect, as it is. After a change that is meant: TANG_UPDATE_GOLDEN=1 test_emit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernel/samples.hpp"
#include "tang/emit/cuda.hpp"
#include "tang/emit/glsl.hpp"
#include "tang/emit/msl.hpp"
#include "tang/emit/opencl.hpp"
#include "tang/emit/wgsl.hpp"
#include "tang/kernel/legalize.hpp"

using namespace samples;

namespace {
std::string file_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

// In f32 storage, which every dialect has.
Kernel small(Sample s, const std::string& name) {
  Kernel k = s.kernel;
  for (auto& m : k.memories)
    if (m.format == Format::f64) m.format = Format::f32;
  target::Facts f;
  f.workgroup = 64;
  k = legalize(k, target::gpu_target("golden", f));
  k.name = name;
  return k;
}
} // namespace

TEST(golden, three_kernels_in_every_dialect) {
  const std::vector<Kernel> kernels = {small(samples::map(100, 32), "map"),
                                       small(row_fold(monoids()[0], {5, 70, 2}), "row_fold"),
                                       small(matmul({19, 21, 13, 8, 8, 4, 4}), "matmul")};
  const std::vector<std::pair<const emit::GpuDialect*, std::string>> dialects = {{&emit::cuda_dialect(), "cu"},
                                                                                 {&emit::opencl_dialect(false), "cl"},
                                                                                 {&emit::glsl_dialect(), "comp"},
                                                                                 {&emit::wgsl_dialect(), "wgsl"},
                                                                                 {&emit::msl_dialect(), "metal"}};
  const bool update = std::getenv("TANG_UPDATE_GOLDEN") != nullptr;
  for (auto& [d, end] : dialects)
    for (auto& k : kernels) {
      const std::string path = std::string(TANG_SOURCE) + "/tests/emit/golden/" + k.name + "." + end;
      const std::string text = emit::gpu(k, *d);
      if (update) std::ofstream(path) << text;
      EXPECT_EQ(text, file_text(path)) << path;
    }
}
