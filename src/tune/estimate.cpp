#include <algorithm>
#include <cmath>

#include "tang/tune/cost.hpp"

namespace tang::tune {

namespace {
// The last wave: workers idle while others finish.
double idle_share(const Work& w, const Machine& m) {
  const double waves = std::ceil(double(w.workgroups) / m.workers);
  return w.workgroups ? waves * m.workers / double(w.workgroups) : 1;
}

// Threads do not start and end together: at the end each other one waits for this share of a workgroup.
constexpr double waits_at_the_end = 0.1;

double idle_share_of_threads(const Work& w, const Machine& m) {
  return idle_share(w, m) + (w.workgroups ? waits_at_the_end * (m.workers - 1) / double(w.workgroups) : 0);
}

// A register block's term takes as long as whatever is busy longest: the units of multiply-adds, the ports of
// the first level (a vector each), or one multiply-add after the other where there are too few accumulators.
std::vector<Term> terms_of_cpu(const Work& w, const Machine& m) {
  const Level& near = m.levels.front();
  const Level& middle = m.levels[std::min<size_t>(1, m.levels.size() - 1)];
  const Level& far = m.levels[std::min<size_t>(2, m.levels.size() - 1)];
  const double idle = idle_share_of_threads(w, m), each = idle / m.workers;
  const double arithmetic = idle * w.padded / m.fma.typical;
  const double operands = idle * w.loads * 4 * m.lanes / near.read.typical;
  const double chains = each * w.chained * m.chain;
  return {{"contractions", arithmetic},
          {"operands of register blocks", std::max(0.0, operands - arithmetic)},
          {"chains of register blocks", std::max(0.0, chains - std::max(arithmetic, operands))},
          {"starts of register blocks", each * w.blocks * m.chain},
          {"other arithmetic", w.padded > 0 ? 0 : idle * w.plain / (m.fma.typical / 2)},
          {"exponentials", idle * w.special / m.exp.typical},
          {"reads by index",
           idle * (w.gathered / middle.read.typical + w.gathered_far / far.read.typical +
                   w.scattered / m.levels.back().read.typical)}};
}

// How many of a GPU's terms are busy at the same time as the others: of these the longest counts.
constexpr int gpu_beside = 5;

std::vector<Term> terms_of_gpu(const Work& w, const Machine& m) {
  const double idle = idle_share(w, m);
  const Start& s = w.resident ? m.full : m.every;
  const Level& middle = m.levels[1];
  return {{"launches and first loads", double(w.launches) * (w.read > 0 ? s.near : s.empty)},
          {"workgroups", double(w.workgroups) * m.workgroup},
          // Not the operands' own bytes: savings of that term were predicted to 25% in 9 of 12 interventions
          // only (docs/results/tune-h200.md), and all schedules of a group have it alike.
          {"reads by index", w.scattered / m.levels.back().read.typical},
          {"second level", idle * (w.near + w.gathered) / middle.read.typical},
          {"matrix instructions", idle * w.matrix / m.matrix.typical},
          {"contractions", w.matrix > 0 ? 0 : idle * w.padded / m.fma.typical},
          {"exponentials", idle * w.special / m.exp.typical},
          {"statements' bytes", idle * w.moved / m.levels.front().read.typical}};
}
} // namespace

std::vector<Term> unweighted(const Work& w, const Machine& m) {
  return m.one.empty > 0 ? terms_of_gpu(w, m) : terms_of_cpu(w, m);
}

bool is_learned(const std::string& term) {
  return term != "other arithmetic" && term != "exponentials" && term != "reads by index";
}

// What savings of one term were, not who is faster: a term is here because interventions of it saved what
// was predicted (docs/results/tune.md, decision 53). `bench_tune report` prints beside these the weights that
// pairs of the race learn, and what they pick of each graph that they never saw.
const std::vector<double>& weights() {
  static const std::vector<double> all = {
      1.0,  // contractions run at the probe's rate
      1.0,  // .. and so do loads of a block,
      1.0,  // .. and multiply-adds that follow each other
      5.0,  // the branch out of a loop over terms, its last sums and stores: so many chained multiply-adds
      1.0,  // other arithmetic, where there is no contraction to hide behind
      0.45, // exponentials: 2^x takes half of the probe's polynomial
      1.2}; // lines of reads by index
  return all;
}

Time estimate(const Work& w, const Machine& m) {
  Time t;
  t.terms = unweighted(w, m);
  if (m.one.empty > 0) { // launches, rows looked up, then whatever resource of all workers is busy longest
    const auto beside = t.terms.end() - gpu_beside;
    for (auto x = t.terms.begin(); x != beside; ++x) t.seconds += x->seconds;
    double longest = 0;
    for (auto x = beside; x != t.terms.end(); ++x) longest = std::max(longest, x->seconds);
    t.seconds += longest;
    return t;
  }
  const std::vector<double>& by = m.weights.size() == t.terms.size() ? m.weights : weights();
  for (size_t k = 0; k < t.terms.size(); ++k) t.seconds += t.terms[k].seconds *= by[k];
  return t;
}

} // namespace tang::tune
