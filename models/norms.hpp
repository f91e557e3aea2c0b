// Normalisations: layer, rms, batch, instance, group.
#pragma once
#include "tang/models/shapes.hpp"

namespace tang::models {

enum class Variance {
  two_pass, // mean first, then the mean square of x - mean
  welford,  // one fold that carries (count, mean, sum of squared deviations)
};

struct Moments {
  Scalar mean, variance; // biased: over n, not n - 1
};

// Of x over these axes, whose extents are given; scalars at the other axes that x mentions.
Moments moments(const Over& over, const std::vector<Extent>& extents, const Scalar& x, Variance how,
                Where where = Where::here());

// x [.., c], gain [c], bias [c] (either may be left out) -> [.., c]: (x - mean) / sqrt(variance + eps) * gain
// + bias. `stored` writes mean and variance down as a textbook would.
struct LayerNorm {
  double eps = 1e-5;
  Variance variance = Variance::two_pass;
  bool stored = false;
};

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, LayerNorm options = {},
                  Where where = Where::here());
// x [.., c], gain [c] -> [.., c]: x / sqrt(mean x^2 + eps) * gain.
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps = 1e-5, Where where = Where::here());

// x [n, c, spatial..], gain [c], bias [c] (either may be left out).
struct Normed {
  Tensor y, mean, variance; // mean and variance: [c]
};

// Training form: statistics over n and the spatial dimensions.
Normed batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps = 1e-5,
                  Variance how = Variance::two_pass, Where where = Where::here());
// Inference form: running mean [c] and variance [c] are given.
Tensor batch_norm_with(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gain,
                       const Tensor& bias, double eps = 1e-5, Where where = Where::here());
// Statistics of each sample and channel over the spatial dimensions.
Tensor instance_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps = 1e-5,
                     Variance how = Variance::two_pass, Where where = Where::here());
// Channels in `groups` runs of c / groups; statistics of each sample and group. Throws Error: groups does not
// divide c.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain, const Tensor& bias, double eps = 1e-5,
                  Variance how = Variance::two_pass, Where where = Where::here());

} // namespace tang::models
