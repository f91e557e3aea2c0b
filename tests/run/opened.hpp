// Every target that this machine can run, opened once a process: software drivers where there is no hardware, Metal emulated.
#pragma once
#include <map>

#include "run/harness.hpp"
#include "run/metal_emulation.hpp"
#include "tang/emit/msl.hpp"
#include "tang/run/targets.hpp"

namespace tang::test {

inline Result<run::Opened> emulated_metal(const run::TargetOptions& o) {
  auto d = EmulatedMetal::find(o.compiler.search, std::string(TANG_SOURCE) + "/tests/device/metal");
  if (!d) return Refusal{d.why()};
  return run::Opened{EmulatedMetal::target(), "MSL as C++ on this CPU", run::on_gpu(*d, emit::msl_dialect(), false)};
}

inline const Result<run::Opened>& opened(const std::string& name) {
  // Never destroyed: a driver may be gone when the program's own end comes.
  static auto& all = *new std::map<std::string, Result<run::Opened>>;
  auto it = all.find(name);
  if (it == all.end()) {
    run::TargetOptions o;
    o.compiler = compiler_options();
    o.threads = 2;
    o.validate = true;
    o.webgpu = {TANG_WEBGPU};
    setenv("XDG_RUNTIME_DIR", "/tmp", 0); // Mesa asks for one
    if (name == "webgpu") setenv("VK_ICD_FILENAMES", TANG_LAVAPIPE, 0); // software, where no driver was chosen
    it = all.emplace(name, name == "metal" ? emulated_metal(o) : run::open_target(name, o)).first;
  }
  return it->second;
}

} // namespace tang::test
