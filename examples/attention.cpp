// Causal attention as a textbook writes it. The N x N arrays of scores and weights are never stored.
#include <cstdio>
#include <tang.hpp>

using namespace tang;

int main() {
  Builder b;
  Tensor q = b.input("q", {4, 256, 64}), k = b.input("k", {4, 256, 64}), v = b.input("v", {4, 256, 64});
  auto [h, i, j, x, c] = axes<"h i j x c">();
  Scalar score = masked(j <= i, sum(x, q(h, i, x) * k(h, j, x)) / 8);
  Scalar weight = exp(score - max(j, score));
  b.output(map({h, i, c}, ratio(sum(j, weight * v(h, j, c)), sum(j, weight))), "out");

  run::Derivation d = run::derive(b.graph(), {});
  std::printf("%s%zu kernel\n", rewrite::explain(d.trace).c_str(), d.kernels.kernels.size());
}
