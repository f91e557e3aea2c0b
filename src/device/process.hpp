// Runs one program from an argument vector (no shell), with limits on time and memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tang::device {

struct ProcessLimits {
  int wall_seconds = 120;            // then the whole process group is killed
  int cpu_seconds = 60;              // of each process
  int64_t memory = int64_t(4) << 30; // bytes of address space of each process
};

struct ProcessResult {
  enum Kind : uint8_t { exited, signalled, timed_out, not_started } kind = not_started;

  int code = 0; // exit status, signal or errno
};

struct Process {
  int pid = -1;
  int error = 0;
};

// Standard input is empty; both outputs go to the file `log`. `environment` is all that the program sees.
Process start(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
              const std::string& log, const ProcessLimits& limits);
ProcessResult finish(const Process& p, const ProcessLimits& limits);

// What `work` returned in a copy of this process, and how that ended: for compilers in libraries, which may crash. The
// copy has this thread alone, so `work` may use no lock that another one holds and no device. A result that ended
// otherwise than exited with 0 has no value.
struct Apart {
  ProcessResult end;
  std::string value;
};

Apart run_apart(const std::function<std::string()>& work, const ProcessLimits& limits);

} // namespace tang::device
