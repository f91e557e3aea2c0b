// A project outside the tree: builds a graph, derives its kernels and prints their source's length.
#include <tang.hpp>
#include <tang/models/norms.hpp>
#include <tang/text/text.hpp>

#include <cstdio>

int main() {
  tang::Builder b;
  tang::Tensor x = b.input("x", {8, 32});
  b.output(tang::models::rms_norm(x, b.param("gain", {32})), "y");
  const tang::run::Options options;
  const tang::run::Derivation d = tang::run::derive(b.graph(), options);
  const std::string source = tang::run::source(d, options);
  const tang::Graph again = tang::text::parse(tang::text::print(b.graph()), "printed.tang");
  std::printf("%zu kernels, same graph: %s\n", d.kernels.kernels.size(),
              tang::ir::hash(again) == tang::ir::hash(b.graph()) ? "yes" : "no");
  return !source.empty() && d.kernels.kernels.size() == 1 ? 0 : 1;
}
