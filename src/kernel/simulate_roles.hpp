// Host execution of a role program: every role has its own program counter, copies and matrix instructions
// complete as late as they may, and what touches a slot or a fragment that is not its own at that moment is
// told.
#pragma once
#include "tang/kernel/roles.hpp"
#include "tang/kernel/simulate.hpp"

namespace tang::kernel {

struct RoleFault {
  enum Kind : uint8_t {
    early,       // a slot is read before its bytes have arrived
    overwritten, // a slot is filled while a matrix instruction or a store still reads it
    unfinished,  // a fragment is touched while a matrix instruction works on it
    unsettled,   // parts of a fold are read as if they were the whole
    uncounted,   // bytes arrive that no barrier expects, or more arrivals than it counts
    outside,     // an access beyond a dimension
    stuck,       // no role can go on
  } kind;

  std::string text;
};

struct RoleOptions {
  enum Copies : uint8_t { late, early } copies = late; // complete when nothing else can go on, or at once

  uint64_t seed = 1;    // which role goes on; 0: the first that can
  int workgroups = 3;   // resident: blocks of work are dealt to them
  bool reverse = false; // the last of them runs first
  int64_t step_limit = 1 << 22;
};

const char* word(RoleFault::Kind k);
// `globals` as for simulate(). The first fault ends the run.
std::optional<RoleFault> simulate_roles(const role::Program& p, std::vector<Buffer>& globals,
                                        const RoleOptions& options = {});

} // namespace tang::kernel
