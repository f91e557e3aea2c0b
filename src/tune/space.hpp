// The schedules that a group may have: every legal change of up to two of its fields.
#pragma once
#include "tang/lower/choose.hpp"
#include "tang/run/program.hpp"
#include "tang/tune/cost.hpp"

namespace tang::tune {

struct Candidate {
  schedule::GroupFields fields; // the automatic choice: none set
  std::string text;             // canonical texts of its kernels, digested: equal texts are one candidate
  std::string shown;            // for people
  bool roles = false;           // a kernel of matrix instructions
  Work work;
  double estimated = 0; // s
};

struct Space {
  size_t step = 0;                   // of the plan
  std::string key, label;            // of the group's first member
  std::vector<Candidate> candidates; // the automatic choice first, the others by estimate
  bool ruled = false; // kernels of matrix instructions: the order is that of the rule that made them
  std::vector<std::string> refused; // why changes did not apply
};

// Of one group of a program; of a recurrence, of the largest group in its body. `d` was derived under `o`;
// fields that `o.schedule` already gives are kept.
Space space_of(const run::Derivation& d, const run::Options& o, size_t step, const Machine& m);
// No measuring: of each group the candidate with the lowest estimate, where it is lower than the automatic
// one's.
schedule::Schedule untimed(const ir::Graph& written, const run::Options& o, const Machine& m);
// The choice of every field, automatic ones included: what a record holds, so that later rules do not change
// it.
schedule::GroupFields resolved(const run::Derivation& d, const run::Options& o, size_t step);

} // namespace tang::tune
