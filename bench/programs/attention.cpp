// Attention forward from its textbook form (scores and probabilities written down) beside sgemm's rate at 2048.
#include "tang/models/attention.hpp"

#include <algorithm>
#include <cmath>

#include "bench.hpp"

namespace bench {

namespace {
// Largest error of a few rows against a plain evaluation in f64.
double error(const float* q, const float* k, const float* v, const float* o, int64_t h, int64_t n, int64_t d, bool causal) {
  double worst = 0, most = 0;
  for (int64_t head = 0; head < h; ++head)
    for (int64_t i = head; i < n; i += std::max<int64_t>(1, n / 23)) {
      const int64_t row = (head * n + i) * d;
      std::vector<double> w;
      double top = -1e300, total = 0;
      for (int64_t j = 0; j < (causal ? i + 1 : n); ++j) {
        double dot = 0;
        for (int64_t c = 0; c < d; ++c) dot += double(q[row + c]) * k[(head * n + j) * d + c];
        w.push_back(dot / std::sqrt(double(d)));
        top = std::max(top, w.back());
      }
      for (double& x : w) total += x = std::exp(x - top);
      for (int64_t c = 0; c < d; ++c) {
        double want = 0;
        for (size_t j = 0; j < w.size(); ++j) want += w[j] * v[(head * n + int64_t(j)) * d + c];
        most = std::max(most, std::fabs(want / total));
        worst = std::max(worst, std::fabs(want / total - o[row + c]));
      }
    }
  return worst / most;
}
}  // namespace

void attention(Bench& b) {
  const int64_t g = 2048;
  std::vector<float> x(size_t(g * g)), y(size_t(g * g)), z(size_t(g * g));
  fill(x.data(), g * g, 1), fill(y.data(), g * g, 2);
  for (int64_t d : {64, 128})
    for (int64_t n : {512, 2048, 8192})
      for (bool causal : {false, true}) {
        const int64_t h = n <= 512 ? 8 : n <= 2048 ? 2 : 1;
        ir::Builder graph;
        Tensor q = graph.input("q", {1, h, n, d}), k = graph.input("k", {1, h, n, d}), v = graph.input("v", {1, h, n, d});
        models::AttentionOptions how;
        how.naive = true;
        if (causal) how.mask = models::causal();
        graph.output(models::attention(q, k, v, how).out, "o");
        auto p = b.program(graph.graph());
        uint32_t seed = 3;
        for (auto name : {"q", "k", "v"}) fill(p->data<float>(name), h * n * d, ++seed);
        Row r;
        r.section = "attention";
        r.name = std::string(causal ? "causal" : "full") + " h" + std::to_string(h) + " n" + std::to_string(n) + " d" + std::to_string(d);
        r.unit = "GFLOP/s", r.peer = "sgemm 2048";
        b.interleave(r, [&] { p->run(); }, [&] { sgemm(g, x.data(), y.data(), z.data()); }, 5, 2);
        r.max_error = error(p->data<float>("q"), p->data<float>("k"), p->data<float>("v"), p->data<float>("o"), h, n, d, causal);
        const double pairs = causal ? 0.5 * double(n) * double(n + 1) : double(n) * double(n);
        const double flops = 4e-9 * double(h) * pairs * double(d), peer = 2e-9 * double(g) * double(g) * double(g);
        r.rate = flops / r.ours.best(), r.peer_rate = peer / r.theirs.best();
        r.ratio = r.rate / r.peer_rate;
        r.ratio_median = flops / r.ours.median() / (peer / r.theirs.median());
        r.least = d == 64 ? 0.5 : 0.6;
        r.more["kernels"] = double(p->derivation().kernels.kernels.size());
        r.schedule = schedules(*p);
        b.add(std::move(r));
      }
}

}  // namespace bench
