// Host execution of a kernel, with every access checked: what a lowering must pass before a device sees it.
#pragma once
#include <array>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// The contents of one global, by address: `r` of a real format, else `i`. At least Memory::size() elements.
struct Buffer {
  std::vector<double> r;
  std::vector<int64_t> i;
};
enum class Order : uint8_t { forward, reverse, random };
struct Options {
  Order order = Order::forward;  // of the workgroups
  uint64_t seed = 1;
  bool rounded = false;          // every real operation in the kernel's `compute` format; else in f64
  int lanes = 4; // of a vector: a Fold with a folded vector axis keeps so many partial results
  int64_t step_limit = int64_t(1) << 34;
};
struct Fault {
  enum Kind : uint8_t {
    outside,    // an access beyond a dimension of its memory
    unwritten,  // a tile's element is read before this workgroup wrote it
    race,       // two workgroups touch one element of a global and one of them writes
    lane_race,  // two lanes of a workgroup do so between two barriers, in a global or a tile
    forbidden,  // a read of a write-only global, or a write to a read-only one
    tail,       // a contraction's operands are not 0 beyond k_end
    endless,    // more than step_limit steps
  } kind;
  std::string text;   // the statement, the element and the coordinates where it happened first
  int64_t count = 1;  // how often, at this statement and memory
};
const char* word(Fault::Kind k);
struct Counts {
  int64_t loads = 0, stores = 0;  // elements
};
struct Outcome {
  std::vector<Fault> faults;            // in order of first occurrence; one a kind, statement and memory
  std::array<Counts, 4> at{};           // by Home
  std::vector<Counts> memory;           // by memory
  std::vector<int64_t> written;         // distinct elements written, by memory (globals only)
  int64_t steps = 0;                    // points and terms evaluated
  bool clean() const { return faults.empty(); }
};
std::string text(const Outcome& o);     // the faults, one a line
// `globals`: one a global memory, in argument order; stores are rounded to each memory's format. Statements
// of one workgroup run in sequence. Bounds are tested in order: a gather in a bound is read only where the
// earlier ones hold, and a body is evaluated only where `when` holds.
Outcome simulate(const Kernel& k, std::vector<Buffer>& globals, const Options& options = {});

}  // namespace tang::kernel
