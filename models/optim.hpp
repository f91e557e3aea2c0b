// Optimizers as graphs: new values of weights and moments under the states' own names, so that a program
// updates them in place.
#pragma once
#include "tang/models/shapes.hpp"

namespace tang::models {

// The rate of step t = 0, 1, ..: rises to `peak` over `warmup` steps, then falls along a cosine to `floor` at
// step `total`; constant when total is 0.
struct Rate {
  double peak = 1e-3;
  int64_t warmup = 0, total = 0;
  double floor = 0;
};

Scalar rate_at(const Rate& r, const Scalar& step); // step: a real

// Gradients of `scale` times a loss, for storage in formats of few exponents: what is stored of them neither
// vanishes nor overflows. Given to an optimizer, it divides them again. A step whose gradients are not finite
// changes no weight, no moment and no count; it only halves the scale.
struct Scaled {
  Tensor loss;        // times the scale, of rank 0: take its gradients
  Tensor scale, good; // states `loss.scale` and `loss.good`: the factor, and how many steps it held
  int64_t grow = 200; // after so many finite steps the scale doubles,
  double most = 0x1p40; // up to this
};

// `loss` of one value. Set `loss.scale` before the first step: tune::choose_scale predicts it.
Scaled scaled(const Tensor& loss, int64_t grow = 200, double most = 0x1p40, Where where = Where::here());

struct Sgd {
  Rate rate;
  double momentum = 0; // u = momentum u + g; w = w - rate u
  double decay = 0;    // added to g: decay w
  double clip = 0;     // gradients are scaled down to this norm over all of them; 0: never
  Scaled scaled = {};  // of the loss whose gradients are given; none: they are the loss's own
};

// Loshchilov and Hutter 2019, decoupled decay: w = w - rate (m^ / (sqrt v^ + eps) + decay w).
struct AdamW {
  Rate rate;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01;
  double clip = 0;
  Scaled scaled = {};
};

// `weights` are states of the builder, `gradients` theirs. Declares states `step` (rank 0, the number of
// steps done) and for each weight w the moments `w.m`, `w.v` (`w.u` of sgd with momentum), which start from
// zeros, and outputs of the same names: one run of the program is one step. Returns the rate of the step, of
// rank 0. Throws Error: a weight that is no state, or a gradient of another shape.
Tensor sgd(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients, const Sgd& o = {},
           Where where = Where::here());
Tensor adamw(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients, const AdamW& o = {},
             Where where = Where::here());

} // namespace tang::models
