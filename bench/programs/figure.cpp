// Figure 1: causal attention, H 8, N 1024, D 64 under three schedules: every array written, scores recomputed from
// stored softmax statistics, and one pass. Traffic as planned, time as measured.
#include <cmath>

#include "bench.hpp"
#include "tang/models/attention.hpp"

namespace bench {

void figure(Bench& b) {
  const int64_t h = 8, n = 1024, d = 64;
  enum Form { as_written, checkpointed, flash };
  std::vector<std::unique_ptr<run::Program>> programs;
  std::vector<Row> rows;
  for (Form form : {as_written, checkpointed, flash}) {
    ir::Builder g;
    Tensor q = g.input("q", {h, n, d}), k = g.input("k", {h, n, d}), v = g.input("v", {h, n, d});
    auto [a, i, j, x, c] = axes<"h i j x c">();
    Scalar dot = sum(x, q(a, i, x) * k(a, j, x)) * (1 / std::sqrt(double(d)));
    if (form == as_written) dot = map({a, i, j}, dot, "scores")(a, i, j);
    const Scalar score = masked(j <= i, dot);
    Scalar top = max(j, score);
    if (form == checkpointed) top = map({a, i}, top, "row_max")(a, i);
    Scalar weight = exp(score - top);
    if (form == as_written) weight = masked(j <= i, map({a, i, j}, or_else(weight, 0), "weights")(a, i, j));
    Scalar total = sum(j, weight);
    if (form == checkpointed) total = map({a, i}, total, "row_sum")(a, i);
    g.output(map({a, i, c}, ratio(sum(j, weight * v(a, j, c)), total)), "o");
    run::Options o = b.options();
    o.optimize = form == flash;
    if (form == as_written) o.schedule = schedule::as_written();
    programs.push_back(b.program(g.graph(), o));
    run::Program& p = *programs.back();
    uint32_t seed = 3;
    for (auto name : {"q", "k", "v"}) fill(p.data<float>(name), h * n * d, ++seed);
    Row r;
    r.section = "figure 1", r.threads = b.threads;
    r.name = form == as_written ? "as written" : form == checkpointed ? "checkpointed" : "flash";
    r.schedule = schedules(p);
    r.more["planned_MB"] = double(p.derivation().plan.bytes_moved()) / 1e6;
    r.more["kernels"] = double(p.derivation().kernels.kernels.size());
    rows.push_back(r);
  }
  for (int round = 0; round < (b.quick ? 3 : 15); ++round)
    for (size_t f = 0; f < programs.size(); ++f) {
      programs[f]->run();
      for (int k = 0; k < 2; ++k) {
        const double t = device::Cpu::seconds();
        programs[f]->run();
        rows[f].ours.t.push_back(device::Cpu::seconds() - t);
      }
    }
  const double flops = 2e-9 * double(h) * double(n) * double(n + 1) * double(d);
  for (size_t f = 0; f < programs.size(); ++f) {
    Row& r = rows[f];
    double worst = 0, most = 0;
    const float *a = programs[f]->data<float>("o"), *w = programs.back()->data<float>("o");
    for (int64_t e = 0; e < h * n * d; ++e) {
      worst = std::max(worst, double(std::fabs(a[e] - w[e])));
      most = std::max(most, double(std::fabs(w[e])));
    }
    r.max_error = worst / most;  // against the one-pass form, which the attention rows check
    r.rate = flops / r.ours.best(), r.unit = "GFLOP/s";
    r.peer = "as written", r.peer_rate = flops / rows[0].ours.best();
    r.ratio = rows[0].ours.best() / r.ours.best(), r.ratio_median = rows[0].ours.median() / r.ours.median();
    b.add(r);
  }
}

}  // namespace bench
