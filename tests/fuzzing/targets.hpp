// How the tests of this folder open a target.
#pragma once
#include <cstdlib>

#include "tang/fuzz/campaign.hpp"

namespace tang::fuzz::test {

inline Settings settings_for(const std::string& target) {
  Settings s;
  const char* path = std::getenv("PATH");
  s.opening.compiler.search = device::split_path(path ? path : "/usr/bin:/bin");
  s.opening.webgpu = {TANG_WEBGPU};
  setenv("XDG_RUNTIME_DIR", "/tmp", 0); // Mesa asks for one
  if (target == "webgpu") setenv("VK_ICD_FILENAMES", TANG_LAVAPIPE, 0); // software, where no driver was chosen
  return s;
}

} // namespace tang::fuzz::test
