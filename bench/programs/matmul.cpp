// y[i, j] = sum[k] x[i, k] w[k, j] beside OpenBLAS sgemm.
#include <algorithm>
#include <cmath>

#include "bench.hpp"

namespace bench {

void matmul(Bench& b) {
  for (int64_t n : {256, 512, 777, 1024, 2048}) {
    ir::Builder g;
    Tensor x = g.input("x", {n, n}), w = g.input("w", {n, n});
    auto [i, j, k] = axes<"i j k">();
    g.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y");
    auto p = b.program(g.graph());
    float *px = p->data<float>("x"), *pw = p->data<float>("w"), *py = p->data<float>("y");
    fill(px, n * n, 1), fill(pw, n * n, 2);
    std::vector<float> c(size_t(n * n));
    Row r;
    r.section = "matmul", r.name = "f32 " + std::to_string(n), r.unit = "GFLOP/s", r.peer = "OpenBLAS sgemm";
    b.interleave(r, [&] { p->run(); }, [&] { sgemm(n, px, pw, c.data()); }, 9, n <= 1024 ? 1.5 : 3);
    double worst = 0, most = 0;
    for (int64_t e = 0; e < n * n; ++e) {
      worst = std::max(worst, double(std::fabs(c[size_t(e)] - py[e])));
      most = std::max(most, double(std::fabs(c[size_t(e)])));
    }
    const double flops = 2.0 * double(n) * double(n) * double(n) / 1e9;
    r.rate = flops / r.ours.best(), r.peer_rate = flops / r.theirs.best();
    r.ratio = r.theirs.best() / r.ours.best(), r.ratio_median = r.theirs.median() / r.ours.median();
    r.least = b.threads == 1 ? 0.92 : 0.85;
    r.max_error = worst / most;
    r.schedule = schedules(*p);
    b.add(std::move(r));
  }
}

}  // namespace bench
