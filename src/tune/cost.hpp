// What a group of kernels costs on a machine: a floor that no run is below, and an estimate that ranks. They
// are different functions over the same counts, with different constants: best rates bound, typical rates
// rank.
#pragma once
#include "tang/bound/nest.hpp"
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
  double near = 0;      // bytes that contractions bring from the second level of memory to the first
  double far = 0;       // bytes that come from beyond the second level
  double loads = 0;     // load instructions of contractions
  double blocks = 0;    // register blocks: each starts and ends a loop over terms
  double chained = 0;   // terms of all register blocks: those of one are added one after the other
  double gathered = 0;  // bytes of the lines that reads by index touch, of tables that the second level holds
  double gathered_far = 0; // .. that a level between the second and memory holds
  double scattered = 0;    // .. and of larger ones
  double matrix = 0;    // of `contracted`, by matrix instructions; one of 32-bit operands counts twice
  double read = 0;      // distinct bytes of stored operands: at least so many are read
  double issued = 0;    // instructions that all subgroups start, at least; 0: not counted
  double after = 0;     // of these one after the other in a lane that has what it read last; of all launches
  bool planned = false; // `workgroups` is how many there are, not how many there may be
  bool resident = false; // workgroups stay, one a worker, and take nearly all of its shared memory
  bool exact = true;
};

// `read`: distinct bytes that the step reads, or 0 when they are not known (see read_bytes).
Work work_of(const std::vector<const lower::Lowered*>& kernels, const Machine& m, double read = 0);
// Counts what the kernels start, as compiled into `cubin` (device::issued); nothing where it cannot be read.
void count_issued(Work& w, const std::vector<const lower::Lowered*>& kernels, const Machine& m,
                  const std::string& cubin);
// Distinct bytes of inputs and buffers that a step reads, at least: exact counts of images under views. Of a
// tensor that is read by index, the rows that `keys` says are known to differ; one, where it says nothing.
double read_bytes(const plan::Plan& p, const plan::Step& s, const bound::Keys& keys = {});

struct Term {
  std::string name;
  double seconds = 0;
};

struct Time {
  std::vector<Term> terms;
  double seconds = 0;
  const Term& binding() const; // the largest term
};

// Never above a run of these kernels on this machine, each launched after the one before it has ended: what
// launches and first loads take at least, where that was probed, and the largest of terms at the best rates
// ever seen, of bytes less what nearer levels may hold from before; what a lane still starts when the last of
// them are there follows them (decision 43, proofs/bound/workers.v). `cold`: nearer levels hold nothing,
// everything else was touched since.
Time floor(const Work& w, const Machine& m, bool cold = false);
// What the estimate adds up, before its weights: the time of one resource each at its typical rate, times the
// share of workers that the last wave leaves idle. The terms of a machine are always the same, in one order.
std::vector<Term> unweighted(const Work& w, const Machine& m);
// Of the terms that `unweighted` gives for a CPU, as this source has them.
const std::vector<double>& weights();
// Whether the tile race can weigh a CPU's term (ranking.hpp): of others the weight is the source's.
bool is_learned(const std::string& term);
// Ranks schedules; a weighted sum of what does not overlap. A machine that has weights of its own
// (ranking.hpp) is estimated with them.
Time estimate(const Work& w, const Machine& m);

} // namespace tang::tune
