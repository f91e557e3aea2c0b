// How the tests of this folder open a target.
#pragma once
#include <cstdlib>

#include "run/metal_emulation.hpp"
#include "tang/emit/msl.hpp"
#include "tang/fuzz/campaign.hpp"

namespace tang::fuzz::test {

inline Settings settings_for(const std::string& target) {
  Settings s;
  const char* path = std::getenv("PATH");
  s.opening.compiler.search = device::split_path(path ? path : "/usr/bin:/bin");
  s.opening.webgpu = {TANG_WEBGPU};
  setenv("XDG_RUNTIME_DIR", "/tmp", 0); // Mesa asks for one
  if (target == "webgpu") setenv("VK_ICD_FILENAMES", TANG_LAVAPIPE, 0); // software, where no driver was chosen
  s.at_once = target == "metal"; // its text as C++, on this processor: a compiler's start is most of a case
  if (s.at_once)
    s.open = [search = s.opening.compiler.search](const std::string&) -> Result<run::Opened> {
      auto d = tang::test::EmulatedMetal::find(search, TANG_SOURCE "/tests/device/metal", "-O0");
      if (!d) return Refusal{d.why()};
      return run::Opened{tang::test::EmulatedMetal::target(), "MSL as C++ on this CPU",
                         run::on_gpu(*d, emit::msl_dialect(), false)};
    };
  return s;
}

} // namespace tang::fuzz::test
