// Why the cover's inequality holds: a sum of submodularities of entropy over row spaces of the views, which
// Coq checks (proofs/bound/lattice.v).
#pragma once
#include "tang/bound/traffic.hpp"

namespace tang::bound {

// h(one) + h(two) >= h(both) + h(neither), `weight` times: `both` is within the sum of the row spaces `one`
// and `two`, `neither` within each. A number that is no place of `matrices` is the empty space.
struct Submodular {
  Rational weight;
  size_t one, two, both, neither;
};

struct Derivation {
  std::vector<Space> matrices;
  std::vector<size_t> of_arrays, of_loops; // places
  size_t whole = 0;                        // of the space that tells all points apart
  std::vector<Submodular> steps;
};

// Of sum s_j h(view_j) + sum t_i h(loop i) >= h(all loops). Refused when there is none, or when the spaces
// that the views make of mixed loops are too many to search.
Result<Derivation> derivation(const std::vector<Space>& views, const std::vector<Rational>& s,
                              const std::vector<Rational>& t);

// The inequality of the cover that a bound rests on, as a theorem after `coq_imports`: of `chain` or `any`,
// which need not be the cover of the certificate.
Result<std::string> as_coq(const Bound& b, const Term& t, const std::string& name);

} // namespace tang::bound
