// Attention and its gradient against f64, of some rows: from the inputs alone, and for dk and dv from lse and o as computed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace bench {

struct AttentionData {
  const float *q, *k, *v, *dout, *o, *lse, *dq, *dk, *dv; // dq null: forward only
  int64_t h, n, d;
  bool causal;
  int64_t window = 0; // keys that a row sees, itself the last; 0: all

  int64_t first(int64_t row) const { return window ? std::max<int64_t>(0, row - window + 1) : 0; }
};

inline double dot(const float* x, const float* y, int64_t d) {
  double s = 0;
  for (int64_t c = 0; c < d; ++c) s += double(x[c]) * double(y[c]);
  return s;
}
// Some rows of every result in f64. Rows of o, lse and dq from the inputs alone; columns (dk, dv) from lse and o as computed.
inline double attention_error(const AttentionData& a) {
  double worst = 0, most[5] = {0, 0, 0, 0, 0}, gap[5] = {0, 0, 0, 0, 0};
  const int64_t n = a.n, d = a.d;
  const double scale = 1 / std::sqrt(double(d));
  auto judge = [&](int what, double got, double want) {
    gap[what] = std::max(gap[what], std::fabs(got - want));
    most[what] = std::max(most[what], std::fabs(want));
  };
  for (int64_t h = 0; h < a.h; ++h) {
    auto at = [&](const float* x, int64_t row) { return x + (h * n + row) * d; };
    for (int64_t i = h; i < n; i += std::max<int64_t>(1, n / 11)) {
      const int64_t first = a.first(i), last = a.causal ? i + 1 : n;
      std::vector<double> s, o(size_t(d), 0), dq(size_t(d), 0);
      double top = -1e300, total = 0, delta = 0;
      for (int64_t j = first; j < last; ++j) s.push_back(scale * dot(at(a.q, i), at(a.k, j), d)), top = std::max(top, s.back());
      for (double x : s) total += std::exp(x - top);
      for (int64_t j = first; j < last; ++j)
        for (int64_t c = 0; c < d; ++c) o[size_t(c)] += std::exp(s[size_t(j - first)] - top) / total * double(at(a.v, j)[c]);
      judge(0, a.lse[h * n + i], top + std::log(total));
      for (int64_t c = 0; c < d; ++c) judge(1, at(a.o, i)[c], o[size_t(c)]);
      if (!a.dq) continue;
      for (int64_t c = 0; c < d; ++c) delta += o[size_t(c)] * double(at(a.dout, i)[c]);
      for (int64_t j = first; j < last; ++j) {
        const double ds = std::exp(s[size_t(j - first)] - top) / total * (dot(at(a.dout, i), at(a.v, j), d) - delta) * scale;
        for (int64_t c = 0; c < d; ++c) dq[size_t(c)] += ds * double(at(a.k, j)[c]);
      }
      for (int64_t c = 0; c < d; ++c) judge(2, at(a.dq, i)[c], dq[size_t(c)]);
    }
    for (int64_t j = h; a.dq && j < n; j += std::max<int64_t>(1, n / 11)) {
      std::vector<double> dk(size_t(d), 0), dv(size_t(d), 0);
      for (int64_t i = a.causal ? j : 0; i < (a.window ? std::min(n, j + a.window) : n); ++i) {
        const double p = std::exp(scale * dot(at(a.q, i), at(a.k, j), d) - double(a.lse[h * n + i]));
        const double ds = p * (dot(at(a.dout, i), at(a.v, j), d) - dot(at(a.dout, i), at(a.o, i), d)) * scale;
        for (int64_t c = 0; c < d; ++c) dk[size_t(c)] += ds * double(at(a.q, i)[c]), dv[size_t(c)] += p * double(at(a.dout, i)[c]);
      }
      for (int64_t c = 0; c < d; ++c) judge(3, at(a.dk, j)[c], dk[size_t(c)]), judge(4, at(a.dv, j)[c], dv[size_t(c)]);
    }
  }
  for (int w = 0; w < (a.dq ? 5 : 2); ++w) worst = std::max(worst, gap[w] / most[w]);
  return worst;
}
} // namespace bench
