// Runs one program from an argument vector (no shell), with limits on time and memory.
#pragma once
#include <cstdint>
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

} // namespace tang::device
