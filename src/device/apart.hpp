// Work of this program in a process of its own, for libraries that may end the one they run in.
#pragma once
#include <functional>

#include "tang/device/process.hpp"

namespace tang::device {

// What `work` returned in a copy of this process, and how that ended: for compilers in libraries, which may crash. The
// copy has this thread alone, so `work` may use no lock that another one holds and no device. A result that ended
// otherwise than exited with 0 has no value.
struct Apart {
  ProcessResult end;
  std::string value;
};

Apart run_apart(const std::function<std::string()>& work, const ProcessLimits& limits);

} // namespace tang::device
