// What the verbs about measured schedules share: the store, the machine's constants, their flags.
#pragma once
#include "tang/cli/tool.hpp"
#include "tang/tune/search.hpp"

namespace tang::cli {

struct TuneFlags {
  double seconds = 30, budget = 1e-4;
  int most = 8;
  uint64_t seed = 1;
  bool again = false, precision = false, untimed = false;
  std::string out, report; // of the schedule; of pictures
};

// Nothing, with one line on stderr, when the cache's folder cannot be used.
std::unique_ptr<tune::Store> open_store(const Host& h);
tune::Machine machine_of(const Host& h, tune::Store* store, bool again); // probes when the store knows none
// Options with the schedule of a file, or the tuned one that the store knows.
run::Options scheduled(const Common& c, const Host& h, const ir::Graph& g, const std::string& file,
                       bool locked);

int tune_program(const Common& c, const std::string& name, const TuneFlags& flags);
int probe(const Common& c, const std::string& out, const std::string& target); // "": c
int cache(const Common& c, const std::string& what, const std::string& file, int64_t days, int64_t most);
int why(const Common& c, const std::string& file, const std::string& kernel);

} // namespace tang::cli
