// Plan -> kernel IR: point, fold, tile and recur steps, all by one skeleton (grid of blocks, a pipeline over the looped
// axis, tile statements, epilogues).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/kernel/kernel.hpp"
#include "tang/plan/plan.hpp"
#include "tang/target/roles.hpp"

namespace tang::lower {

// What a kernel's global memory is bound to: a port of the plan's graph (an input or a buffer), or a temporary.
struct Argument {
  std::variant<ir::Port, int> what;
  bool written = false;
};
struct Lowered {
  kernel::Kernel kernel;
  std::vector<Argument> arguments;  // one a global memory, in order
  int step = 0;                     // of the plan
  std::string label;                // of the nodes it computes, for people
  std::string schedule;             // what was chosen, for people: "tile 96x128 pack copy"
  std::optional<target::Roles> roles;  // the kernel is in tensor form, for warpgroups in these roles
  int pieces = 0;                   // its contractions take their operands in so many 16-bit pieces; 0: whole
  std::string refused;              // why it is not, where the target could
};
// A recurrence runs kernels [first, first + count) once a step; loops inside it have a greater depth.
struct Loop {
  std::vector<char> live;           // of each step, in order of time: dead steps keep the state
  bool reverse = false;
  int first = 0, count = 0;
  int depth = 0;
  int time = -1;                    // temporary of one i64: the step's number
};
struct Program {
  std::vector<Lowered> kernels;
  std::vector<int64_t> temporaries;  // bytes of each
  std::vector<Loop> loops;
};
// In which format a port is stored: an input's or a buffer's.
kernel::Format format_of(const plan::Plan& p, ir::Port port);
Program lower(const plan::Plan& p, const schedule::Schedule& s, const target::Target& t);
// Arguments of which `place` says the same become one; refused where their memories are laid out differently.
using PlaceOf = std::function<std::variant<ir::Port, int>(const Argument&)>;
std::optional<Refusal> name_once(Lowered& l, const PlaceOf& place);

}  // namespace tang::lower
