// Candidates run in a child process: a copy of everything, so that inputs stay as they are, and one that
// crashes or hangs takes nothing with it. Each is poisoned, run between guard bands and compared before its
// time counts.
#pragma once
#include <atomic>
#include <functional>

#include "tang/verify/verify.hpp"

namespace tang::tune {

// Times of repeated runs, in seconds; [low, high] is a 95% interval of the median.
struct Sample {
  double median = 0, low = 0, high = 0, best = 0;
  int runs = 0;
};

Sample sample_of(std::vector<double> seconds);

// Does a beat b beyond doubt?
inline bool disjoint(const Sample& a, const Sample& b) { return a.high < b.low || b.high < a.low; }

struct Trial {
  enum Kind : uint8_t { pending, ok, refused, wrong, crashed, hung, stopped } kind = pending;

  std::string why;           // of anything but ok
  double error = 0;          // largest of the outputs
  Sample whole;              // the program
  std::vector<Sample> steps; // of its plan, the kernels of each together
  run::Derivation derivation;
};

// What outputs should be.
struct Reference {
  std::map<std::string, eval::Array> outputs;
  std::string from; // "the f64 oracle", or the graph as written in f32 when that would take too long
};

struct Bench {
  const ir::Graph& written;
  const eval::Inputs& inputs;
  run::Options options;                       // the schedule is the candidate's
  std::shared_ptr<device::Compiler> compiler; // with a kernel cache: the child loads what was compiled before
  Reference reference;
  double budget = 1e-4; // largest error of an output
  double deadline = 30; // s that a candidate may be silent
  int compilers = 2;    // at once
  const std::atomic<bool>* stop = nullptr;
  std::function<void(size_t k, Trial::Kind)> done = {}; // after each candidate's check
  std::function<void(size_t k)> in_child = {}; // before a candidate's first run, in the child (tests)
  // Seconds of a whole run, in place of the machine's clock (tests: whether a move is kept is then no race).
  std::function<double(const run::Derivation&)> clock = {};
};

// What the outputs of a program that ran hold, by name.
std::map<std::string, eval::Array> results(run::Program& p, const ir::Graph& written);

// Bounds the oracle's work: beyond it the reference is the program as written, one kernel a node.
inline constexpr double most_oracle_terms = 4e8;
double oracle_terms(const ir::Graph& g);
Reference reference_of(const ir::Graph& written, const eval::Inputs& inputs, const run::Options& o,
                       const std::shared_ptr<device::Compiler>& compiler);

// One run from poisoned memory: the largest error of the outputs, and what is wrong (empty: nothing).
std::pair<double, std::string> checked(run::Program& p, const ir::Graph& written, const eval::Inputs& inputs,
                                       const Reference& r, double budget);

// Checks each schedule, then measures those that passed in turns, about `seconds` each and at least `least`
// runs.
std::vector<Trial> measure(const Bench& b, const std::vector<schedule::Schedule>& all, double seconds,
                           int least = 5);

} // namespace tang::tune
