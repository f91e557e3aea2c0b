// A program on an NVIDIA GPU: the same derivation as on a CPU, legalized for many lanes.
#pragma once
#include "tang/device/cuda.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

// Options whose target is the GPU's plain form.
Options cuda_options();
Options ampere_options(); // with matrix instructions of subgroups, on sm_80
Options hopper_options(); // .. and its matrix instructions, on sm_90a
// The kernels' source as one unit of the CUDA target.
std::string cuda_source(const Derivation& d, const target::Target& t = target::cuda_target());
// `early`: a kernel may begin while the one before it ends, where the GPU can; it waits by itself.
Backend on_cuda(std::shared_ptr<device::CudaCompiler> compiler, std::shared_ptr<device::Cuda> gpu,
                const std::string& architecture = "sm_90a", bool early = true);

class CudaProgram : public Program {
public:
  // `architecture`: of NVRTC, "sm_90a". Throws CudaError. The compiler outlives the program.
  CudaProgram(const ir::Graph& g, device::CudaCompiler& compiler, std::shared_ptr<device::Cuda> gpu,
              Options o = cuda_options(), const std::string& architecture = "sm_90a",
              bool early = true);
};

} // namespace tang::run
