#include "tang/run/targets.hpp"

#include "tang/device/metal.hpp"
#include "tang/device/opencl.hpp"
#include "tang/device/vulkan.hpp"
#include "tang/device/webgpu.hpp"
#include "tang/emit/glsl.hpp"
#include "tang/emit/msl.hpp"
#include "tang/emit/opencl.hpp"
#include "tang/emit/wgsl.hpp"
#include "tang/run/cuda.hpp"

namespace tang::run {

Backend on_gpu(std::shared_ptr<device::Device> device, const emit::GpuDialect& dialect, bool one_text_a_kernel) {
  return {std::move(device), [&dialect, one_text_a_kernel](const Derivation& d, const Options&) {
            std::vector<const kernel::Kernel*> all;
            device::Unit u;
            for (auto& l : d.kernels.kernels) {
              all.push_back(&l.kernel);
              u.entries.push_back({l.kernel.name, one_text_a_kernel ? emit::gpu_unit({&l.kernel}, dialect) : "",
                                   emit::launched_groups(l.kernel, dialect), l.kernel.lanes,
                                   emit::shared_bytes(l.kernel), int(l.arguments.size())});
            }
            if (!one_text_a_kernel) u.source = emit::gpu_unit(all, dialect);
            return u;
          }};
}

namespace {
Result<Opened> open_c(const TargetOptions& o) {
  auto open = [&](const device::CompilerOptions& how) {
    auto compiler = std::make_shared<device::Compiler>(how);
    Opened out{target::c_target_of_host(o.threads), "compiler " + compiler->path(), {}};
    out.backend = on_cpu(std::move(compiler), std::make_shared<device::Cpu>(o.threads));
    return out;
  };
  try {
    return open(o.compiler);
  } catch (const device::CompileError& e) {
    return Refusal{e.headline()};
  } catch (const Error&) { // the folder of the cache cannot be used: compile anew
    device::CompilerOptions plain = o.compiler;
    plain.cache.clear();
    return open(plain);
  }
}

// By the GPU's compute capability: 8.x has subgroups that multiply small matrices; some of them have less shared memory.
target::Target cuda_target_of(const device::Cuda& gpu) {
  constexpr int64_t smaller = 101376; // bytes a workgroup may have in 8.6 and 8.9
  const int c = gpu.capability();
  target::Target t = c >= 80 && c < 90 ? target::ampere_target() : target::cuda_target();
  if (c == 86 || c == 89) t.shared_limit = smaller, t.fast_memory = 96 << 10, t.near_memory = 24 << 10;
  if (c < 90) t.cluster = 1, t.workers = gpu.processors();
  return t;
}

Result<Opened> open_cuda(const TargetOptions& o) {
  auto gpu = device::Cuda::find();
  if (!gpu) return Refusal{gpu.why()};
  device::CudaCompilerOptions c;
  c.cache = o.cache;
  auto compiler = device::CudaCompiler::find(c);
  if (!compiler) return Refusal{compiler.why()};
  const std::string arch = "sm_" + std::to_string((*gpu)->capability()) + ((*gpu)->capability() == 90 ? "a" : "");
  return Opened{cuda_target_of(**gpu), (*gpu)->name() + ", " + (*compiler)->identity(), on_cuda(*compiler, *gpu, arch)};
}

Result<Opened> open_opencl(const TargetOptions&) {
  auto d = device::Opencl::find();
  if (!d) return Refusal{d.why()};
  return Opened{(*d)->target(), (*d)->name(), on_gpu(*d, emit::opencl_dialect((*d)->f64()), false)};
}

Result<Opened> open_vulkan(const TargetOptions& o) {
  auto d = device::Vulkan::find({o.compiler.search, o.cache, o.validate});
  if (!d) return Refusal{d.why()};
  return Opened{(*d)->target(), (*d)->name(), on_gpu(*d, emit::glsl_dialect(), true)};
}

Result<Opened> open_webgpu(const TargetOptions& o) {
  auto d = device::Webgpu::find({o.webgpu});
  if (!d) return Refusal{d.why()};
  return Opened{(*d)->target(), (*d)->name(), on_gpu(*d, emit::wgsl_dialect(), true)};
}

Result<Opened> open_metal(const TargetOptions&) {
#if defined __APPLE__
  auto d = device::Metal::find();
  if (!d) return Refusal{d.why()};
  return Opened{(*d)->target(), (*d)->name(), on_gpu(*d, emit::msl_dialect(), false)};
#else
  return Refusal{"Metal is of Apple's systems, and this is another"};
#endif
}

struct Row {
  const char* name;
  Result<Opened> (*open)(const TargetOptions&);
};

const Row rows[] = {{"c", open_c}, {"cuda", open_cuda}, {"opencl", open_opencl}, {"vulkan", open_vulkan}, {"webgpu", open_webgpu}, {"metal", open_metal}};
} // namespace

const std::vector<std::string>& target_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (auto& r : rows) out.push_back(r.name);
    return out;
  }();
  return names;
}

Result<Opened> open_target(const std::string& name, const TargetOptions& o) {
  for (auto& r : rows)
    if (name == r.name) return r.open(o);
  std::string all;
  for (auto& r : rows) all += (all.empty() ? "" : ", ") + std::string(r.name);
  throw Error({}, "there is no target '" + name + "'", {{"targets are " + all, {}}}, "choose one of them");
}

Options options_for(const target::Target& t) {
  Options o;
  o.target = t;
  return o;
}

} // namespace tang::run
