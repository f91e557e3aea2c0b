// What a machine can do, measured by probes that know nothing of the kernels they help to predict.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/device/compiler.hpp"
#include "tang/device/cpu.hpp"

namespace tang::tune {

// Two values of a rate: the best of all repeats, which bounds (with `margin` on top), and the median, which
// predicts.
struct Rate {
  double best = 0, typical = 0;
};

// One level of memory: what all workers together hold there and read from it.
struct Level {
  std::string name;
  int64_t bytes = 0; // capacity; memory: 0, there is no end
  Rate read;         // bytes/s when the data lie here and not nearer
};

struct Machine {
  std::string device;   // model and features of the processor, as a digest; and how many workers
  std::string compiler; // that made the probes
  std::string date;
  int workers = 1, lanes = 1;
  Rate fma;                  // flop/s in f32, a multiply-add is two
  Rate exp;                  // exponentials/s in f32, by a polynomial of our own
  Rate write;                // bytes/s of stores to memory
  double call = 0;           // s of a launch of one workgroup: no thread is woken
  double launch = 0;         // s of a launch of one workgroup a worker
  double workgroup = 0;      // s that one more workgroup costs
  std::vector<Level> levels; // nearest first, memory last
};

// How much faster than the best probe a kernel is allowed for when a bound is computed: clocks drift.
inline constexpr double margin = 1.15;

// About a second. `compiler` need not be the one that kernels are compiled with, but shares its machine.
Machine probe(device::Compiler& compiler, device::Cpu& cpu, int lanes);
std::string as_json(const Machine& m); // schema tang.probe/1
Result<Machine> machine_of(const std::string& json);

} // namespace tang::tune
