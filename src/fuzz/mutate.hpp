// Faults put into kernels on purpose: does what checks kernels find them? (Mutation analysis: DeMillo, Lipton
// and Sayward 1978.) Kernel IR is data, so a mutant is a copy with one field changed.
#pragma once
#include "tang/eval/oracle.hpp"
#include "tang/kernel/roles.hpp"
#include "tang/kernel/simulate.hpp"
#include "tang/run/program.hpp"

namespace tang::fuzz {

struct Operator {
  const char* name;
  // Changes the site of this number; false: there are fewer.
  std::function<bool(kernel::Kernel&, int64_t)> change;
};

const std::vector<Operator>& operators();

// A program whose kernels are changed, with inputs.
struct Subject {
  std::string name;
  run::Derivation derivation;
  eval::Inputs inputs;
};

// Of a random case, for the C target or a GPU; nothing when it has no derivation.
std::optional<Subject> subject_of(uint64_t seed);

struct Mutation {
  int64_t sites = 0, check = 0, simulator = 0, value = 0; // found by: the first that does
  int64_t equivalent = 0; // the same bits and no complaint in every simulated run
  int64_t hidden = 0;     // other bits, within what verification allows
  std::vector<std::string> missed;
};

// `sites` an operator, spread evenly over all that the subjects have. `budget`: the largest error relative to
// the largest value that passes, as verify() has it.
std::map<std::string, Mutation> mutate(const std::vector<Subject>& subjects, int64_t sites,
                                       double budget = 1e-4);

// The same of role programs, in their own simulator under many orders of events.
struct RoleOperator {
  const char* name;
  std::function<bool(kernel::role::Program&, int64_t)> change;
};

const std::vector<RoleOperator>& role_operators();

struct RoleSubject {
  std::string name;
  kernel::role::Program program;
  std::vector<kernel::Buffer> before, want; // globals
};

// The kernels of a program that are divided into roles; none where its target has no such kernels.
std::vector<RoleSubject> role_subjects(const Subject& s);
std::map<std::string, Mutation> mutate(const std::vector<RoleSubject>& subjects, int64_t sites);

std::string text(const std::map<std::string, Mutation>& m);
// Of the mutants that are not equivalent, how many are found.
double killed(const std::map<std::string, Mutation>& m);

} // namespace tang::fuzz
