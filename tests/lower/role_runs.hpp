// What tests of kernels in tensor form share: inputs in their own formats, and how far two runs differ.
#pragma once
#include "lower/pipeline.hpp"

namespace tang::test {

// Small products take warpgroups too, where a subgroup has no matrix instructions of its own.
inline target::Target warpgroups_alone() {
  target::Target t = target::hopper_target();
  t.small_matrices = false;
  return t;
}

// Values of the inputs' own formats, so that only the kernels round.
inline eval::Inputs rounded_inputs(const ir::Graph& g) {
  eval::Inputs in = random_inputs(g);
  for (auto& n : g.nodes)
    if (auto* x = n.input())
      for (double& v : in[n.name].r) v = ir::rounded(2 * v, x->format);
  return in;
}

// The largest difference of two runs, over the largest value; NaN where one of them is.
inline double difference(const std::vector<kernel::Buffer>& a, const std::vector<kernel::Buffer>& b) {
  double top = 0, off = 0;
  for (size_t m = 0; m < a.size(); ++m)
    for (size_t x = 0; x < a[m].r.size(); ++x) {
      if (std::isnan(a[m].r[x]) != std::isnan(b[m].r[x])) return std::nan("");
      if (std::isnan(a[m].r[x])) continue;
      top = std::max(top, std::abs(a[m].r[x])), off = std::max(off, std::abs(a[m].r[x] - b[m].r[x]));
    }
  return off / top;
}

} // namespace tang::test
