// Where a program's time goes: each kernel's best run, its share of all, and the rate of what it contracts.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "bench.hpp"
#include "tang/kernel/analyze.hpp"

namespace bench {

void print_kernels(run::Program& p, int rounds) {
  const auto& all = p.derivation().kernels.kernels;
  std::vector<double> best(all.size(), 1e9);
  double start = 0;
  for (int r = 0; r < rounds; ++r)
    p.run([&](size_t) { start = device::Cpu::seconds(); },
          [&](size_t k) { best[k] = std::min(best[k], device::Cpu::seconds() - start); });
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return best[a] > best[b]; });
  const double sum = std::accumulate(best.begin(), best.end(), 0.0);
  std::printf("%9s %6s %8s %8s  %s\n", "us", "share", "GFLOP", "GFLOP/s", "kernel");
  for (size_t k : order) {
    const double flops = 1e-9 * double(kernel::traffic(all[k].kernel, p.target().lanes).contracted);
    std::printf("%9.1f %5.1f%% %8.3f %8.1f  %zu %s: %s\n", best[k] * 1e6, 100 * best[k] / sum, flops, flops / best[k], k,
                all[k].label.c_str(), all[k].schedule.c_str());
  }
  std::printf("%9.1f us in all, the sum of best runs\n", sum * 1e6);
}

}  // namespace bench
