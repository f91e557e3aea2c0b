// What a group of kernels costs on a machine: a floor that no run is below, and an estimate that ranks. They
// are different functions over the same counts, with different constants: best rates bound, typical rates
// rank.
#pragma once
#include "tang/lower/lower.hpp"
#include "tang/tune/machine.hpp"

namespace tang::tune {

// Counts over all workgroups of a step's kernels.
struct Work {
  int64_t launches = 0, workgroups = 0; // workgroups: of the main kernel
  double contracted = 0;                // flops in contractions, as executed without padding
  double padded = 0;                    // the same with register blocks filled up
  double plain = 0;                     // other flops
  double special = 0;                   // exponentials, roots, reciprocals, ..
  double moved = 0;                     // bytes that statements load and store outside contractions
  double near = 0;   // bytes that contractions bring from the second level of memory to the first
  double far = 0;    // bytes that come from beyond the second level
  double loads = 0;  // load instructions of contractions
  double blocks = 0; // register blocks: each starts and ends a loop over terms
  double read = 0;   // distinct bytes of stored operands: at least so many are read
  bool exact = true;
};

// `ports`: distinct bytes that the step reads, or 0 when they are not known (see read_bytes).
Work work_of(const std::vector<const kernel::Kernel*>& kernels, const Machine& m, double read = 0);
// Distinct bytes of inputs and buffers that a step reads, at least: exact counts of images under views,
// gathers left out. `after` rewriting.
double read_bytes(const plan::Plan& p, const plan::Step& s);

struct Term {
  std::string name;
  double seconds = 0;
};

struct Time {
  std::vector<Term> terms;
  double seconds = 0;
  const Term& binding() const; // the largest term
};

// Never above a run of these kernels on this machine: a maximum of terms at the best rates ever seen, less
// than what the caches may still hold.
Time floor(const Work& w, const Machine& m);
std::vector<Term> unweighted(const Work& w, const Machine& m);
const std::vector<double>& weights(); // of these terms
// Ranks schedules; a weighted sum of what does not overlap.
Time estimate(const Work& w, const Machine& m);

} // namespace tang::tune
