// Every device by name: found or not, with its limits, and as a backend of programs.
#pragma once
#include "tang/run/program.hpp"

namespace tang::run {

struct TargetOptions {
  device::CompilerOptions compiler; // of the C target, and of emulations that compile on the host
  int threads = 1;
  std::string cache; // folder of compiled kernels; empty: none
  bool validate = false; // compiled kernels through a second validator, where one is found
};

struct Opened {
  target::Target target;
  std::string description; // of the device and its driver
  Backend backend;
};

const std::vector<std::string>& target_names();
// Why it cannot be used here, or the device ready to run. Throws Error: a name that is not one of target_names().
Result<Opened> open_target(const std::string& name, const TargetOptions& o);
// The same target without a device: what its kernels are legalized for, from the least that such devices have.
Options options_for(const target::Target& t);

} // namespace tang::run
