// Attention forward and its derived gradient beside sgemm's rate at 2048: 3.5 times the forward's matmul flops, of live
// pairs.
#include "backward/attention.hpp"

#include <algorithm>
#include <cmath>

#include "bench.hpp"

namespace bench {

namespace {
struct Data {
  const float *q, *k, *v, *dout, *o, *lse, *dq, *dk, *dv;
  int64_t h, n, d;
  bool causal;
};
double dot(const float* x, const float* y, int64_t d) {
  double s = 0;
  for (int64_t c = 0; c < d; ++c) s += double(x[c]) * double(y[c]);
  return s;
}
// Some rows of every result in f64. Rows of o, lse and dq from the inputs alone; columns (dk, dv) from lse and o as computed.
double error(const Data& a) {
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
      const int64_t last = a.causal ? i + 1 : n;
      std::vector<double> s, o(size_t(d), 0), dq(size_t(d), 0);
      double top = -1e300, total = 0, delta = 0;
      for (int64_t j = 0; j < last; ++j) s.push_back(scale * dot(at(a.q, i), at(a.k, j), d)), top = std::max(top, s.back());
      for (double x : s) total += std::exp(x - top);
      for (int64_t j = 0; j < last; ++j)
        for (int64_t c = 0; c < d; ++c) o[size_t(c)] += std::exp(s[size_t(j)] - top) / total * double(at(a.v, j)[c]);
      for (int64_t c = 0; c < d; ++c) delta += o[size_t(c)] * double(at(a.dout, i)[c]);
      for (int64_t j = 0; j < last; ++j) {
        const double ds = std::exp(s[size_t(j)] - top) / total * (dot(at(a.dout, i), at(a.v, j), d) - delta) * scale;
        for (int64_t c = 0; c < d; ++c) dq[size_t(c)] += ds * double(at(a.k, j)[c]);
      }
      judge(0, a.lse[h * n + i], top + std::log(total));
      for (int64_t c = 0; c < d; ++c) judge(1, at(a.o, i)[c], o[size_t(c)]), judge(2, at(a.dq, i)[c], dq[size_t(c)]);
    }
    for (int64_t j = h; j < n; j += std::max<int64_t>(1, n / 11)) {
      std::vector<double> dk(size_t(d), 0), dv(size_t(d), 0);
      for (int64_t i = a.causal ? j : 0; i < n; ++i) {
        const double p = std::exp(scale * dot(at(a.q, i), at(a.k, j), d) - double(a.lse[h * n + i]));
        const double ds = p * (dot(at(a.dout, i), at(a.v, j), d) - dot(at(a.dout, i), at(a.o, i), d)) * scale;
        for (int64_t c = 0; c < d; ++c) dk[size_t(c)] += ds * double(at(a.q, i)[c]), dv[size_t(c)] += p * double(at(a.dout, i)[c]);
      }
      for (int64_t c = 0; c < d; ++c) judge(3, at(a.dk, j)[c], dk[size_t(c)]), judge(4, at(a.dv, j)[c], dv[size_t(c)]);
    }
  }
  for (int w = 0; w < 5; ++w) worst = std::max(worst, gap[w] / most[w]);
  return worst;
}
}  // namespace

void backward(Bench& b) {
  const int64_t g = 2048;
  std::vector<float> x(size_t(g * g)), y(size_t(g * g)), z(size_t(g * g));
  fill(x.data(), g * g, 1), fill(y.data(), g * g, 2);
  for (int64_t d : {64, 128})
    for (int64_t n : {512, 2048, 8192})
      for (bool causal : {false, true}) {
        const int64_t h = n <= 512 ? 8 : n <= 2048 ? 2 : 1;
        const ir::Graph graph = test::attention_with_backward({.heads = h, .rows = n, .keys = n, .d = d, .c = d, .causal = causal, .row_sums = true});
        run::Options o = b.options();
        auto p = b.program(graph, o);
        uint32_t seed = 3;
        for (auto name : {"q", "k", "v", "do"}) fill(p->data<float>(name), h * n * d, ++seed);
        Row r;
        r.section = "backward";
        r.name = std::string(causal ? "causal" : "full") + " h" + std::to_string(h) + " n" + std::to_string(n) + " d" + std::to_string(d);
        r.unit = "GFLOP/s", r.peer = "sgemm 2048";
        b.interleave(r, [&] { p->run(); }, [&] { sgemm(g, x.data(), y.data(), z.data()); }, 5, 2);
        auto f = [&](const char* name) { return p->data<float>(name); };
        r.max_error = error({f("q"), f("k"), f("v"), f("do"), f("o"), f("lse"), f("dq"), f("dk"), f("dv"), h, n, d, causal});
        const double pairs = causal ? 0.5 * double(n) * double(n + 1) : double(n) * double(n);
        const double flops = 14e-9 * double(h) * pairs * double(d), peer = 2e-9 * double(g) * double(g) * double(g);
        r.rate = flops / r.ours.best(), r.peer_rate = peer / r.theirs.best();
        r.ratio = r.rate / r.peer_rate;
        r.ratio_median = flops / r.ours.median() / (peer / r.theirs.median());
        r.least = 0.4;
        r.more["kernels"] = double(p->derivation().kernels.kernels.size());
        r.schedule = schedules(*p);
        b.add(std::move(r));
      }
}

}  // namespace bench
