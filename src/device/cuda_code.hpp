// Machine code of an NVIDIA GPU, read as far as paths through it go: how many instructions a kernel starts at
// least. Everything that is not understood counts as the end of a path, so that counts are never too high.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tang/base/error.hpp"

namespace tang::device {

struct Instruction {
  std::vector<int> next; // what a lane may start after it
  bool leaves = false;   // a lane may end here, or go where the code does not say
  bool loads = false;    // brings bytes of memory into registers
  bool copies = false;   // brings them, or may bring them, elsewhere
  int counter = -1;      // is counted up by a load that starts and down by its result
  unsigned waits = 0;    // counters, as bits, that are 0 before it starts
};

struct MachineCode {
  std::string name; // of the kernel
  std::vector<Instruction> code;
};

// Of one lane, on any path: instructions it starts, and of these how many one after the other after the first one
// that waits for a load, whichever load comes last. 0 `after` where bytes come elsewhere than into registers.
struct Issued {
  int64_t all = 0, after = 0;
};

// The kernels of a file for compute capability 9.0; a Refusal says what it is instead.
Result<std::vector<MachineCode>> machine_code(const std::string& cubin);
// Of each instruction: how many are started at least from it on, itself among them, before the lane ends.
std::vector<int64_t> least_left(const MachineCode& k);
// The certificate of these numbers: no instruction's is above one more than that of any that may come next, nor
// above 1 where a lane may end (proofs/bound/workers.v: `potential_below_every_path`).
bool below_every_path(const MachineCode& k, const std::vector<int64_t>& left);
Issued issued(const MachineCode& k);

} // namespace tang::device
