// The table of monoids. A row is what a user's own monoid is: no pass reads its name.
#pragma once
#include "tang/ir/surface.hpp"

namespace tang::ir {

const MonoidSpec& sum_of_reals();
const MonoidSpec& sum_of_index();
const MonoidSpec& max_of_reals();
const MonoidSpec& min_of_reals();
const MonoidSpec& any_of();
const MonoidSpec& all_of();
// (m, c1 .. cn): the running max and n sums rescaled to it. A term is (score, f1, .. fn) and counts exp(score
// - m) f.
MonoidSpec online_softmax(int sums);
// (value, index): the largest value, NaN above +inf, the smaller index among equals; empty: (-inf,
// INT64_MAX).
const MonoidSpec& argmax();
const MonoidSpec& argmin();
// (count, mean, sum of squared deviations): a term is (1, x, 0).
const MonoidSpec& welford();
// k values in descending order, then their k indices; argmax's order. A term is (x, -inf .., i, INT64_MAX
// ..).
MonoidSpec topk(int k);
std::vector<MonoidSpec> all_monoids(); // the registry (topk for small k)
// More that have a proof: a product, affine maps, sums since the last start, the largest value and how often
// it occurs.
std::vector<MonoidSpec> more_proved_monoids();

// Have its laws a proof among those that `tang export proofs` prints? A row of the two lists above, any
// number of sums and places, under any name; or rows side by side. Compared as simplified terms.
bool is_proved(const Pool& p, const Monoid& m);
bool is_proved(const MonoidSpec& m);
// The monoid of a row, over variables of this pool.
Monoid traced(Pool& p, const MonoidSpec& m, size_t first_component = 0);

Scalar logsumexp(const Over& over, const Scalar& e, Where where = Where::here());
// (values, indices), each of length k; an empty place has value -inf and index -1.
std::pair<std::vector<Scalar>, std::vector<Scalar>> top(int k, const Axis& over, const Scalar& e,
                                                        Where where = Where::here());

} // namespace tang::ir
