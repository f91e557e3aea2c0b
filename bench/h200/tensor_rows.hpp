// Rows of a product or a convolution in f64, from the operands' stored values.
#pragma once
#include <map>

#include "tensor_work.hpp"

namespace tang::bench {

using Data = std::map<std::string, std::vector<uint8_t>>;

inline std::vector<double> gemm_row(const Work& w, const Data& data, int64_t i) {
  const auto &a = data.at("a"), &b = data.at("b");
  std::vector<double> sum(size_t(w.n), 0.0);
  for (int64_t l = 0; l < w.k; ++l) {
    const double x = real(a, w.at('a') ? l * w.m + i : i * w.k + l, w.element);
    const int64_t block = w.blocks() ? l / w.blocks() : 0;
    const double scaled = w.blocks() ? x * double(Work::scale('a', block, i)) : x;
    for (int64_t j = 0; j < w.n; ++j)
      sum[size_t(j)] += scaled * (w.blocks() ? double(Work::scale('b', block, j / w.blocks())) : 1) * real(b, w.at('b') ? j * w.k + l : l * w.n + j, w.element);
  }
  for (double& s : sum) s *= w.scaled() && !w.blocks() ? Work::scale_a * Work::scale_b : 1;
  return sum;
}

// All results of one place of an image.
inline std::vector<double> conv_row(const Work& w, const Data& data, int64_t row) {
  const auto &x = data.at("x"), &f = data.at("w");
  const int64_t across = w.places(w.width), down = w.places(w.height), each = w.channels / w.groups,
                left = row % across * w.stride - w.taps / 2,
                top = row / across % down * w.stride - w.taps / 2, image = row / across / down;
  std::vector<double> sum(size_t(w.outs), 0.0);
  for (int64_t r = 0; r < w.taps; ++r)
    for (int64_t s = 0; s < w.taps; ++s) {
      const int64_t v = top + r, u = left + s;
      if (v < 0 || v >= w.height || u < 0 || u >= w.width) continue;
      const int64_t pixel = ((image * w.height + v) * w.width + u) * w.channels;
      for (int64_t o = 0; o < w.outs; ++o)
        for (int64_t c = 0; c < each; ++c)
          sum[size_t(o)] += real(x, pixel + o / (w.outs / w.groups) * each + c, w.element) *
                            real(f, ((o * w.taps + r) * w.taps + s) * each + c, w.element);
    }
  return sum;
}

// The squared error of a row and its squared length, or the largest of each.
inline void product_row(const Work& w, const Data& data, const std::vector<uint8_t>& out, int64_t row,
                        double& num, double& den) {
  const std::vector<double> want = w.conv() ? conv_row(w, data, row) : gemm_row(w, data, row);
  const int64_t n = int64_t(want.size());
  for (int64_t j = 0; j < n; ++j) {
    w.judge(real(out, row * n + j, w.result()) - want[size_t(j)], want[size_t(j)], num, den);
  }
}

} // namespace tang::bench
