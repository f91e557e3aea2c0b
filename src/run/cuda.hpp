// A program on an NVIDIA GPU: the same derivation as on a CPU, legalized for many lanes; its memories live on
// the device.
#pragma once
#include "tang/device/cuda.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

// Options whose target is the GPU's plain form.
Options cuda_options();
// The kernels' source as one unit of the CUDA target.
std::string cuda_source(const Derivation& d);

class CudaProgram {
public:
  // `architecture`: of NVRTC, "sm_90a". Throws CudaError.
  CudaProgram(const ir::Graph& g, device::CudaCompiler& compiler, std::shared_ptr<device::Cuda> gpu,
              Options o = cuda_options(), const std::string& architecture = "sm_90a");

  // Inputs, params, states and outputs by name, as in Program.
  void write(const std::string& name, const void* bytes); // all of it, in its format
  void read(const std::string& name, void* bytes);

  int64_t elements(const std::string& name) const { return named(name).elements; }

  ir::Format format(const std::string& name) const { return named(name).format; }

  using Hook = std::function<void(size_t kernel)>;
  void run(const Hook& before = {}, const Hook& after = {});
  void run_kernel(size_t k);

  const Derivation& derivation() const { return derivation_; }

  device::Cuda& gpu() { return *gpu_; }

  std::optional<uint64_t> port(ir::Port p);  // where a stored port lies
  void poison_scratch();                     // the arena and the temporaries
  std::vector<std::string> trespass() const; // guard bands that were written

private:
  using Memory = std::shared_ptr<device::CudaBuffer>;

  struct Named {
    ir::Port port;
    ir::Format format;
    int64_t elements;

    size_t bytes() const { return size_t(elements * bytes_of(format)); }
  };

  struct Launch {
    void* function;
    int64_t blocks, shared;
    int lanes;
    std::vector<uint64_t> pointers;
  };

  struct Carry {
    uint64_t from, to;
    size_t bytes;
  };

  const Named& named(const std::string& name) const;
  void bind_all();
  void launch(size_t k);
  void range(size_t first, size_t last, int depth, const Hook& before, const Hook& after);

  Options options_;
  Derivation derivation_;
  std::shared_ptr<device::Cuda> gpu_;
  std::shared_ptr<device::CudaModule> module_;
  std::map<std::string, Named> named_;
  std::map<ir::Port, Memory> bound_;
  Memory arena_;
  std::vector<Memory> temporaries_;
  std::vector<Launch> launches_;
  std::vector<Carry> carries_;
};

} // namespace tang::run
