// Softmax and what is made of it: weights, averages, log-sum-exp, cross entropy.
#pragma once
#include "tang/models/shapes.hpp"

namespace tang::models {

// exp(score - max), without its sum. Absent where the score is; absent in a row whose scores are all -inf, so
// that such a row counts as empty under every schedule.
Scalar softmax_weight(const Over& over, const Scalar& score, Where where = Where::here());

// Layout-free attention: `score` and `value` are scalars at the axes they mention.
struct Attended {
  Scalar out; // sum softmax(score) * value; 0 where no key is visible
  Scalar lse; // log sum exp(score); -inf there
};

Attended attend(const Over& keys, const Scalar& score, const Scalar& value, Where where = Where::here());

// x [.., n] -> [.., n] along the last dimension. A row of -inf gives 0. `stored` writes exp(x - max) down.
Tensor softmax(const Tensor& x, bool stored = false, Where where = Where::here());
// x - log sum exp x along the last dimension.
Tensor log_softmax(const Tensor& x, Where where = Where::here());

// x [.., n] -> [..]: log sum exp along the last dimension; -inf for an empty row or one of -inf, inf where x
// has inf.
Tensor log_sum_exp(const Tensor& x, Where where = Where::here());

// logits [rows, classes], target [rows] of index -> [rows]: log sum exp(logits) - logits[target], in nats.
// With smoothing s the target counts 1 - s and every class s / classes.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, double smoothing = 0,
                     Where where = Where::here());
// x [rows] -> [1], the mean.
Tensor mean(const Tensor& x, Where where = Where::here());

} // namespace tang::models
