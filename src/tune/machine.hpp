// What a machine can do, measured by probes that know nothing of the kernels they help to predict.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/device/compiler.hpp"
#include "tang/device/cpu.hpp"
#include "tang/device/cuda.hpp"

namespace tang::tune {

// Two values of a rate: the best of all repeats, which bounds (with `margin` on top), and the median, which
// predicts.
struct Rate {
  double best = 0, typical = 0;
};

// One level of memory: what all workers together hold there and read from it.
struct Level {
  std::string name;
  int64_t bytes = 0;  // capacity; memory: 0, there is no end
  Rate read;          // bytes/s when the data lie here and not nearer
  bool kept = true;   // a kernel may find here what the one before it left
  double latency = 0; // s of a load whose address the last one gave, the least seen; 0: not probed
};

// What memory gives when so many bytes of a worker are on their way.
struct InFlight {
  int64_t bytes = 0; // asked for and not there yet, a worker
  double rate = 0;   // bytes/s of all workers
};

// Seconds of one launch in a chain of launches that each wait for the one before, the least seen: of kernels
// that do nothing; whose lanes load a word that the second level holds and store what they make of it; that
// memory holds.
struct Start {
  double empty = 0, near = 0, cold = 0;
};

struct Machine {
  std::string device;   // model and features of the processor, as a digest; and how many workers
  std::string compiler; // that made the probes
  std::string driver;   // of a GPU; else empty
  std::string date;
  int workers = 1, lanes = 1;
  // How much faster than the best probe a kernel is allowed for when a bound is computed: clocks drift.
  double margin = 1.15;
  Rate fma;                  // flop/s in f32, a multiply-add is two
  Rate exp;                  // exponentials/s in f32, by a polynomial of our own
  Rate write;                // bytes/s of stores to memory
  double call = 0;           // s of a launch of one workgroup: no thread is woken
  double launch = 0;         // s of a launch of one workgroup a worker
  double workgroup = 0;      // s that one more workgroup costs
  double chain = 0;          // s from a multiply-add of vectors to one that needs its result; 0: not probed
  std::vector<Level> levels; // nearest first, memory last
  // Of a GPU; 0 elsewhere.
  Rate matrix;            // flop/s of matrix instructions on 16-bit operands
  Start one, every, full; // of one workgroup; of one a worker; .. with nearly all of its shared memory
  std::vector<std::pair<int64_t, Start>> some; // of so many workgroups, fewer than workers; the fewest first
  double begin_early =
      0;              // s of an empty launch that may start before the one before it ends, and waits inside
  double ingress = 0; // bytes/s that one worker alone reads from the second level
  double clock = 0;   // Hz, the highest, as the driver says it
  int schedulers = 0; // of a worker; each starts an instruction of a subgroup a cycle at most
  std::vector<InFlight> in_flight;
  // Of a CPU, learned from what was timed on it (ranking.hpp): of the estimate's terms; empty: the source's.
  std::vector<double> weights;
};

std::string today(); // date and time, UTC

// About a second. `compiler` need not be the one that kernels are compiled with, but shares its machine.
Machine probe(device::Compiler& compiler, device::Cpu& cpu, int lanes);
// The same of an NVIDIA GPU of compute capability 9.0; a few seconds. Throws CudaError.
Machine probe(const std::shared_ptr<device::Cuda>& gpu, device::CudaCompiler& compiler);
std::string cuda_probes();             // their text, for a compiler that needs no GPU
std::string as_json(const Machine& m); // schema tang.probe/1
Result<Machine> machine_of(const std::string& json);

} // namespace tang::tune
