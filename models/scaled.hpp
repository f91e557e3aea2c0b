// Products of narrow arrays whose scales go by blocks.
#pragma once
#include "tang/models/shapes.hpp"

namespace tang::models {

// a [m, k], b [n, k], each times its scales: a_scale [k / c, m], one for c terms of a row, rows next to each
// other; b_scale [n / r, k / c], one for c terms of r columns -> [m, n]:
//   y(m, n) = sum over k of a(m, k) a_scale(k / c, m) b(n, k) b_scale(n / r, k / c)
// Throws Error where c or r is no whole number, or k or n is symbolic.
Tensor scaled_product(const Tensor& a, const Tensor& a_scale, const Tensor& b, const Tensor& b_scale,
                      Where where = Where::here());

} // namespace tang::models
