// Many programs for the C target, compiled at once. Private to the room.
#pragma once
#include "tang/fuzz/variants.hpp"

namespace tang::fuzz {

struct Twin { // the case in another form
  Variant kind = Variant::none;
  Case c;
  run::Options options;
  std::optional<run::Derivation> derivation;
};

struct Job {
  const Case* c = nullptr;
  Reference want;
  run::Options options;
  std::optional<run::Derivation> derivation;
  std::vector<Fault> faults;
  Judged count;
  bool refused = false; // the drawn schedule, by an Error that says so
  std::optional<Twin> twin;
};

// The program's derivation, or the fault that it is.
void derive(Job& j, const target::Target& t);
target::Target row_of(const Case& c); // of the C target
// Which other form also runs: a function of the case, none for most.
void derive_twin(Job& j);

// What turns the C target's text into code.
struct Toolchain {
  bool in_memory = false;         // inside this process, the scalar row; else the system's compiler at -O1
  device::CompilerOptions system; // where it is
};

// All kernels in one unit a width of vectors; each job's faults are added.
void run_on_c(std::vector<Job>& jobs, const Toolchain& tools, const std::function<void(size_t)>& now);
// The target `simulator`: kernels of the C row, or of a GPU, in the kernel simulator.
target::Target simulated_row(const Case& c);
void run_simulated(Job& j);
// One program on an opened device.
void run_on(Job& j, const run::Backend& b);

} // namespace tang::fuzz
