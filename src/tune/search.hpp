// Tuning: search over schedules of a program, measured; what was learned is kept in the store.
#pragma once
#include "tang/tune/space.hpp"
#include "tang/tune/store.hpp"
#include "tang/tune/trial.hpp"

namespace tang::tune {

struct Progress {
  std::string what;           // "groups, round 2 of 6"
  int done = 0, of = 0;       // candidates
  double first = 0, best = 0; // s of the program: with the automatic schedule, with the best so far
  double seconds = 0, eta = 0;
};

struct Options {
  double seconds = 30; // for the whole search; what was found by then counts
  double each = 0.06;  // of measuring a candidate
  int most = 8;        // candidates of a group that are timed
  double error_budget = 1e-4;
  double deadline = 30;
  bool again = false; // measure although the store knows the program
  Store* store = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const Progress&)> progress = {};
  std::function<void(size_t k)> in_child = {}; // tests
};

// One candidate that was timed.
struct Timed {
  std::string group, fields, shown; // group: key of the group, or "program"
  Trial::Kind kind = Trial::pending;
  std::string why;
  double estimated = 0; // s; 0: a whole program
  Sample time;          // of the group's step, or of the program
  bool remembered = false;
};

struct Tuned {
  schedule::Record record;
  Sample before, after; // the program: automatic schedule and chosen one, in turns
  bool from_store = false, stopped = false;
  std::vector<Timed> timed;
  std::vector<std::string> refused;
  std::string reference; // what outputs were compared with
  double error = 0, seconds = 0;
};

// Identity of a program on a machine: what its row in the store is found by.
std::string program_key(const ir::Graph& written, const run::Options& o, const device::Compiler& c);
// A record of a derived program: its schedule with what it was made for. Throws nothing.
schedule::Record record_of(const ir::Graph& written, const run::Derivation& d, const run::Options& o);
std::string target_text(const target::Target& t);

// `o.schedule` is where the search starts. The program as written is a candidate, too.
Tuned tune(const ir::Graph& written, const eval::Inputs& inputs, const run::Options& o,
           const std::shared_ptr<device::Compiler>& compiler, const Machine& m, const Options& how);

// The schedule of a record for this graph and target. Throws Error, with both facts, when it is for another
// graph, names groups or axes that the program does not have, or asks for what is refused. `locked`: also
// when its kernels are not the very ones that it was made with.
run::Options restored(const schedule::Record& r, const ir::Graph& written, run::Options o, bool locked);
// The tuned schedule that the store knows for a program, if it still gives the kernels it was made with.
std::optional<schedule::Record> recalled(const ir::Graph& written, const run::Options& o,
                                         const device::Compiler& c, Store& s);

} // namespace tang::tune
