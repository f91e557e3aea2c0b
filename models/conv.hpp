// Convolutions, transposed convolutions and pooling over any number of spatial dimensions.
#pragma once
#include "tang/models/mlp.hpp"

namespace tang::models {

// Per spatial dimension; one entry serves all of them. `pad` is zeros on both sides, `pad_end` (if given) on
// the far side.
struct Conv {
  std::vector<int64_t> stride = {1}, pad = {0}, pad_end = {}, dilation = {1};
  int64_t groups = 1;
  bool channels_last = false; // x [n, spatial.., c], w [out, kernel.., c / groups]; else x [n, c, spatial..],
                              // w [out, c / groups, kernel..]
};

// Cross-correlation: y[n, o, p] = sum_{c, k} x[n, c, stride p + dilation k - pad] w[o, c, k] (+ bias[o]);
// channel groups as in Krizhevsky 2012 (groups = c is depthwise). Extent of y: floor((in + pads - dilation (k
// - 1) - 1) / stride) + 1. Throws Error: ranks, channels that do not fit, groups that do not divide, a kernel
// larger than the padded input.
Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias = {}, Conv options = {},
            const Activation& act = {}, Where where = Where::here());
// Names of the field; they check the number of spatial dimensions.
Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, Conv options = {},
              const Activation& act = {}, Where where = Where::here());
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, Conv options = {},
              const Activation& act = {}, Where where = Where::here());

struct ConvTranspose {
  std::vector<int64_t> stride = {1}, pad = {0}, dilation = {1}, output_pad = {0};
  int64_t groups = 1;
};

// The adjoint of conv: y[n, o, stride i + dilation k - pad] += x[n, c, i] w[c, o, k]; x [n, c, spatial..],
// w [c, out / groups, kernel..]. Extent of y: (in - 1) stride - 2 pad + dilation (k - 1) + 1 + output_pad.
Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& bias = {}, ConvTranspose options = {},
                      Where where = Where::here());

struct Pool {
  std::vector<int64_t> window = {2}, stride = {}, pad = {0}; // no stride: the window
  bool channels_last = false;
  bool count_padding = false; // of average pooling: divide by the whole window rather than by what it covers
};

// Padding never wins: a place outside is absent, not 0.
Tensor max_pool(const Tensor& x, Pool options, Where where = Where::here());
Tensor avg_pool(const Tensor& x, Pool options, Where where = Where::here());

} // namespace tang::models
