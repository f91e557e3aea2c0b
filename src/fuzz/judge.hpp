// Is what a device computed what the graph says?
#pragma once
#include "tang/fuzz/case.hpp"

namespace tang::fuzz {

struct Fault {
  std::string kind, what; // value, unwritten, trespass, error, bug, crash, ..; one line
};

// How many values were compared, and how many could not be: no finite bound of their error exists.
struct Judged {
  int64_t values = 0, open = 0;
};

// The outputs of one run, by name.
using Outputs = std::map<std::string, eval::Array>;

// The reference: the graph as written, by the oracle.
struct Reference {
  ir::Graph graph; // bound
  std::map<std::string, eval::Array> outputs;
};

Reference reference(const Case& c);
// Compares by bits where the case is of integers, else by the error bound of the graph that ran; on a target
// of class *finite* the largest f32 stands for infinity.
std::vector<Fault> judge(const Case& c, const Reference& r, const run::Derivation& d, const Outputs& got,
                         Judged& count, target::Class values = target::Class::exact);
// Runs the program on the case's inputs, with poisoned memory and guard bands.
Outputs execute(run::Program& p, const Case& c, const ir::Graph& written, std::vector<Fault>& faults);
std::vector<std::string> rule_names(); // every rewrite rule
// What needs no device: text round trip, each rule against the oracle, rules before or after binding.
std::vector<Fault> laws(const Case& c, const Reference& r, std::map<std::string, int64_t>& fired,
                        Judged& count);

} // namespace tang::fuzz
