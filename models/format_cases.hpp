// Long sums whose rounding in narrow formats is published or easily checked by hand: the cases of
// docs/results/formats.md beside the library's builders.
#pragma once
#include "tang/models/cases.hpp"

namespace tang::cases {

// Each map's variance over its pixels, as adaptive instance normalization stores it: [1, c, n, n] -> [c].
inline Graph pixel_variances(int64_t channels, int64_t side) {
  Builder b;
  Tensor x = b.input("x", {channels, side, side});
  auto [c, i, j] = axes<"c i j">();
  const double n = double(side * side);
  const Tensor mean = map({c}, sum(i, sum(j, x(c, i, j))) / n, "mean");
  b.output(map({c}, sum(i, sum(j, square(x(c, i, j) - mean(c)))) / n), "variance");
  return b.graph();
}

// The same over one axis of pixels: sums of n terms in one fold, which a schedule may split.
inline Graph flat_variances(int64_t channels, int64_t pixels) {
  Builder b;
  Tensor x = b.input("x", {channels, pixels});
  auto [c, j] = axes<"c j">();
  const Tensor mean = map({c}, sum(j, x(c, j)) / double(pixels), "mean");
  b.output(map({c}, sum(j, square(x(c, j) - mean(c))) / double(pixels)), "variance");
  return b.graph();
}

// A ConvNeXt block's norm and its first pointwise product: x [pixels, c], w [4 c, c].
inline Graph convnext_block(int64_t pixels, int64_t channels) {
  Builder b;
  Tensor x = b.input("x", {pixels, channels}), w = b.param("w", {channels * 4, channels});
  const Tensor y = layer_norm(x, b.param("gain", {channels}), b.param("bias", {channels}));
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i, j}, sum(k, y(i, k) * w(j, k))), "pointwise");
  return b.graph();
}

// 512 channels by 7 taps: sums of 3584 terms.
inline Graph long_conv1d() {
  Builder b;
  b.output(conv1d(b.input("x", {1, 512, 24}), b.param("w", {8, 512, 7}), {}, {{1}, {3}}), "y");
  return b.graph();
}

inline Graph long_products(int64_t terms) {
  Builder b;
  Tensor x = b.input("x", {16, terms}), w = b.param("w", {terms, 16});
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y");
  return b.graph();
}

struct LongSum {
  const char* name;
  Graph (*graph)();
  int parts; // in which its sums are also split; 1: not
};

inline const LongSum long_sums[] = {
    {"AdaIN variance, 64 x 64 pixels", [] { return pixel_variances(8, 64); }, 1},
    {"AdaIN variance, 4096 in one fold", [] { return flat_variances(8, 4096); }, 256},
    {"ConvNeXt norm and pointwise product, 768", [] { return convnext_block(24, 768); }, 1},
    {"conv1d, 3584 terms", [] { return long_conv1d(); }, 1},
    {"matmul, 4096 terms", [] { return long_products(4096); }, 64},
};

} // namespace tang::cases
