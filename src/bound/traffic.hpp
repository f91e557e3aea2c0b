// The traffic bound: compulsory elements, and for every vertex of the cover a term with explicit constants.
#pragma once
#include "tang/bound/program.hpp"

namespace tang::bound {

// chain: a running value is in fast memory whenever it is updated, and its first value is loaded too.
// any: accumulators may start fresh as often as one likes; folds may be split and reassociated.
enum class Model { chain, any };

// Q >= leading - correction, in units. s and t are over the arrays and loops of `Bound::nest`.
struct Term {
  std::vector<Rational> s, t;
  Rational sigma;
  double estimate = 0; // the leading term as a real number
  int64_t leading = 0; // its integer part, exact
  int64_t correction = 0;

  int64_t value() const { return leading > correction ? leading - correction : 0; }
};

struct Compulsory {
  std::string name;
  int64_t units = 0;
  bool exact = true; // else at least that many
};

struct Bound {
  Nest nest; // as bounded: strided loops split, arrays with equal kernels merged
  int64_t memory = 0, points = 0, compulsory = 0, outputs = 0; // outputs: units of all output elements
  std::vector<Compulsory> arrays;
  std::vector<Term> vertices;     // of the cover, chain model, estimates only
  std::optional<Term> chain, any; // the best vertex of each, if any tells something
  Certificate certificate;
  std::vector<std::string> notes;
  int64_t value(Model m) const; // the larger of compulsory and the best term
  // A schedule that never splits a fold but starts each accumulator for nothing saves at most one load of
  // each output.
  int64_t unsplit() const;
};

Result<Bound> bound(const Nest& n, int64_t memory);
// Elements of an array that the live points touch: exact; of a gather at least so many.
Result<int64_t> elements(const Nest& n, const Array& a);

// The nest that bound() works on. Where a strided loop meets one of step 1, that one is split into remainder
// and quotient, so that only the quotients mix.
Nest prepared(const Nest& n, std::vector<std::string>* notes = nullptr);
// All vertices of { s, t >= 0 : conditions }, each scaled to a rational point.
std::vector<std::pair<std::vector<Rational>, std::vector<Rational>>>
vertices(const Nest& n, const std::vector<Condition>& rows);
// The term of one cover when loop `axis` has these sizes one after the other (the experts of a routed layer,
// the keys of a gather): leading terms add up, one correction. Every array must be touched by one part only.
Result<Term> by_part(const Nest& n, int axis, const std::vector<int64_t>& sizes, int64_t memory, Model m);

// Distinct experts that T tokens meet when each picks k of E uniformly without replacement.
double expected_experts(int64_t experts, int64_t picked, int64_t tokens);

} // namespace tang::bound
