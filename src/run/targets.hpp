// Every device by name: found or not, with its limits, and as a backend of programs.
#pragma once
#include "tang/emit/dialect.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

struct TargetOptions {
  device::CompilerOptions compiler; // of the C target, and of emulations that compile on the host
  int threads = 1;
  std::string cache; // folder of compiled kernels; empty: none
  std::vector<std::string> webgpu; // libraries to try before those that the loader finds by itself
  bool validate = false; // compiled kernels through a second validator, where one is found
};

struct Opened {
  target::Target target;
  std::string description; // of the device and its driver
  Backend backend;
};

// Kernels in a dialect for a device: all in one text, as a compiler that takes a unit wants them, or one text a kernel.
Backend on_gpu(std::shared_ptr<device::Device> device, const emit::GpuDialect& dialect, bool one_text_a_kernel);
const std::vector<std::string>& target_names();
// Why it cannot be used here, or the device ready to run. Throws Error: a name that is not one of target_names().
Result<Opened> open_target(const std::string& name, const TargetOptions& o);
// The same target without a device: what its kernels are legalized for, from the least that such devices have.
Options options_for(const target::Target& t);

} // namespace tang::run
