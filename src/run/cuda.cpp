#include "tang/run/cuda.hpp"

#include "tang/emit/cuda.hpp"

namespace tang::run {

Options cuda_options() {
  Options o;
  o.target = target::cuda_target();
  return o;
}

std::string cuda_source(const Derivation& d) {
  std::vector<const kernel::Kernel*> all;
  for (auto& l : d.kernels.kernels) all.push_back(&l.kernel);
  return emit::cuda_unit(all);
}

Backend on_cuda(std::shared_ptr<device::CudaCompiler> compiler, std::shared_ptr<device::Cuda> gpu,
                const std::string& architecture) {
  auto print = [](const Derivation& d, const Options&) {
    device::Unit u{cuda_source(d), {}};
    for (auto& l : d.kernels.kernels)
      u.entries.push_back({l.kernel.name, "", emit::cuda_blocks(l.kernel), l.kernel.lanes,
                           emit::cuda_shared_bytes(l.kernel), int(l.arguments.size())});
    return u;
  };
  return {std::make_shared<device::CudaDevice>(std::move(gpu), std::move(compiler), architecture), print};
}

CudaProgram::CudaProgram(const ir::Graph& g, device::CudaCompiler& compiler,
                         std::shared_ptr<device::Cuda> gpu, Options o, const std::string& architecture)
    : Program(g, on_cuda({&compiler, [](auto*) {}}, std::move(gpu), architecture), std::move(o)) {}

} // namespace tang::run
