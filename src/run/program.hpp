// A program: a graph compiled for a device, its memory planned, ready to run many times without allocating.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "tang/device/cpu.hpp"
#include "tang/eval/oracle.hpp"
#include "tang/lower/lower.hpp"
#include "tang/rewrite/driver.hpp"

namespace tang::run {

// Largest error of each output: of its largest value, or of the size of its terms where no values are known.
struct ErrorBudget {
  double all = 1e-4;
  std::map<std::string, double> of = {}; // outputs with a budget of their own
  eval::Inputs samples = {};             // by name; none: only what is proved for all inputs counts

  double at(const std::string& output) const {
    auto it = of.find(output);
    return it == of.end() ? all : it->second;
  }
};

struct Options {
  schedule::Schedule schedule;
  target::Target target;            // default: this machine, one thread
  bool optimize = true;             // false: the graph as written
  // On a target with matrix instructions: in which format arrays that never leave the program are stored (numbers a row
  // are f32); what a product reads is then an array. Not set: f32, and products of what happens to be arrays.
  std::optional<ir::Format> operands;
  bool guards = false;              // guard bands around every buffer, for verification
  std::optional<ErrorBudget> budget; // derive throws an Error for what may be further off
  device::CompilerOptions compiler; // where to look for one, and the kernel cache's folder
  Options();
};

// Everything that compilation decides, as values: nothing here depends on a device being present.
struct Derivation {
  rewrite::Trace trace;
  plan::Plan plan;
  lower::Program kernels;         // legalized for the target
  std::vector<std::string> names; // of each kernel's function; equal kernels share one
  double seconds = 0;             // spent deriving
};

// The pipeline, as one list: optimize, expose supports, plan, lower, legalize, name.
Derivation derive(const ir::Graph& g, const Options& o);
// The kernels' source as one unit of the C target.
std::string source(const Derivation& d, const Options& o);

// A device, and how kernels are written for it.
struct Backend {
  std::shared_ptr<device::Device> device;
  std::function<device::Unit(const Derivation&, const Options&)> print;
};

Backend on_cpu(std::shared_ptr<device::Compiler> compiler, std::shared_ptr<device::Cpu> cpu);

// Memory that several programs may share: weights, caches.
using Memory = std::shared_ptr<device::Region>;

class Program {
public:
  Program(const ir::Graph& g, std::shared_ptr<device::Compiler> compiler, std::shared_ptr<device::Cpu> cpu,
          Options o = {});
  // The target of the options is the backend's.
  Program(const ir::Graph& g, Backend backend, Options o);
  // What derive() gave for these options, which are the backend's.
  Program(Derivation d, Backend backend, Options o);

  // Inputs, params, states and outputs by name. Unbound ones get zeroed memory of their own at the first run.
  // Throws Error: a name that is not there (with the nearest one), or a size that does not fit.
  void bind(const std::string& name, Memory memory);
  Memory memory(const std::string& name);

  template <class T> T* data(const std::string& name) { return memory(name)->as<T>(); } // on the host's device

  void write(const std::string& name, const void* bytes); // all of it, in its format
  void read(const std::string& name, void* bytes);

  int64_t elements(const std::string& name) const { return named(name).elements; }

  ir::Format format(const std::string& name) const { return named(name).format; }

  // Runs every kernel; a state's new value is in its memory afterwards.
  void run() { run({}, {}); }

  // The same, with a call before and after each kernel (verification, timing).
  using Hook = std::function<void(size_t kernel)>;
  void run(const Hook& before, const Hook& after);

  void run_kernel(size_t k); // one kernel alone, on what the memories hold

  const Derivation& derivation() const { return derivation_; }

  const target::Target& target() const { return options_.target; }

  device::Device& device() { return *backend_.device; }

  // Where a stored port lies; nothing for one that is not stored.
  std::optional<device::Slice> port(ir::Port p);

  device::Region& arena() { return *arena_; }

  const std::vector<Memory>& temporaries() const { return temporaries_; }

  void poison_scratch();                     // the arena and the temporaries
  std::vector<std::string> trespass() const; // guard bands that were written

private:
  struct Named {
    ir::Port port;
    ir::Format format;
    int64_t elements;

    size_t bytes() const;
  };

  struct Carry {
    device::Slice to, from;
  };

  void prepare();
  void range(size_t first, size_t last, int depth, const Hook& before, const Hook& after);
  const Named& named(const std::string& name) const;

  Options options_;
  Backend backend_;
  Derivation derivation_;
  std::shared_ptr<device::Code> code_;
  std::map<std::string, Named> named_;
  std::map<ir::Port, Memory> bound_;
  Memory arena_;
  std::vector<Memory> temporaries_;
  std::vector<std::unique_ptr<device::Launch>> launches_; // of each kernel
  std::vector<Carry> carries_; // new values of states that could not be written in place
  bool prepared_ = false;
};

// Conversions between host arrays and a buffer's format.
void write(void* to, ir::Format f, const std::vector<double>& values);
void write(void* to, ir::Format f, const std::vector<int64_t>& values);
std::vector<double> read_reals(const void* from, ir::Format f, int64_t n);
std::vector<int64_t> read_integers(const void* from, ir::Format f, int64_t n);
int64_t bytes_of(ir::Format f);

} // namespace tang::run
