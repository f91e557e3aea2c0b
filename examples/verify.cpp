// Derive a normalised row product, run it on this CPU, and check every kernel against the f64 oracle.
#include <cmath>
#include <cstdio>
#include <tang.hpp>

using namespace tang;

int main() {
  Builder b;
  Tensor x = b.input("x", {32, 64}), w = b.param("w", {48, 64});
  auto [i, k, o] = axes<"i k o">();
  Scalar scale = sqrt(sum(k, square(x(i, k))) / size(x, 1) + 1e-5);
  b.output(map({i, o}, sum(k, x(i, k) * w(o, k)) / scale), "y");
  const Graph g = b.graph();

  device::CompilerOptions tools;
  tools.search = {"/usr/local/bin", "/usr/bin", "/bin"};
  run::Options options;
  options.guards = true;
  Program p(g, std::make_shared<Compiler>(tools), std::make_shared<Cpu>(2), options);

  auto wave = [](std::vector<int64_t> shape) {
    eval::Array a(shape, Type::real);
    for (size_t n = 0; n < a.r.size(); ++n) a.r[n] = std::sin(double(n));
    return a;
  };
  const verify::Report r = verify::verify(p, g, {{"x", wave({32, 64})}, {"w", wave({48, 64})}}, 1e-5);
  std::printf("%d verified, %d failed\n", r.verified(), r.failed());
  return r.ok() ? 0 : 1;
}
