// Every kernel against the f64 oracle, from the device's own state: poisoned outputs, guard bands, blame by
// provenance.
#pragma once
#include <functional>

#include "tang/eval/oracle.hpp"
#include "tang/run/program.hpp"

namespace tang::verify {

struct Check {
  std::string what;      // the buffer's label
  std::string schedule;  // of its kernel
  size_t kernel = 0;     // index into the program's kernels
  double error = 0;      // max |value - reference| / scale
  double scale = 0;      // max |reference|
  int64_t values = 0;    // compared
  int64_t unwritten = 0; // still poisoned
  bool ok = false; // the error is within the budget, or each value within a computed bound of its rounding
                   // (bound.hpp)
  std::string why; // of a failure: what the buffer holds instead, when that is known
};

struct Report {
  std::vector<Check>
      kernels; // one a stored port, in the order of steps: each from the device's own earlier results
  std::vector<Check> outputs;        // the program's outputs against the graph as written
  std::vector<std::string> trespass; // guard bands that were written
  bool ok() const;
  int verified() const;
  int failed() const;
  double worst() const; // largest error of the outputs
};

// Told of each buffer as it is judged: what it holds, and the reference from the device's own earlier
// results.
using Seen = std::function<void(const Check&, const eval::Array& got, const eval::Array& want)>;

// Binds `inputs` by name, poisons what the program writes, runs it kernel by kernel. `written`: the graph as
// the user wrote it. `budget`: the largest error allowed. States are read as given and overwritten.
Report verify(run::Program& p, const ir::Graph& written, const eval::Inputs& inputs, double budget,
              int threads = 1, const Seen& seen = {});
// A value as far as a target promises it: on class *finite* the largest f32 stands for infinity, and what is
// beyond half of it is taken for it, too.
double as_promised(double v, target::Class values);
// Values in memory against a reference; error, counts and ok are filled.
Check compared(const void* held, ir::Format f, const eval::Array& want, double budget);
void feed(run::Program& p, const ir::Graph& g,
          const eval::Inputs& inputs); // host values into the program's memories
eval::Array read(run::Program& p, ir::Port port, ir::Format f, const ir::Graph& g);

} // namespace tang::verify
