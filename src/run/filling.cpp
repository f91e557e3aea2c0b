// Inputs of self-tests.
#include <algorithm>

#include "tang/base/hash.hpp"
#include "tang/ir/selected.hpp"
#include "tang/run/standalone.hpp"

namespace tang::run {

std::map<std::string, Filling> fillings(const ir::Graph& g, uint64_t seed) {
  const std::map<ir::NodeId, int64_t> below = ir::selected(g);
  std::map<std::string, Filling> out;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id) {
    auto* in = g[id].input();
    if (!in) continue;
    Filling f;
    f.seed = mix(seed ^ hash_of(g[id].name));
    int64_t widest = 1; // weights as they are initialised: about 1 / sqrt(width)
    if (in->kind == ir::Input::param && in->shape.size() > 1)
      for (auto& e : in->shape) widest = std::max(widest, e.value());
    while (f.halvings < 6 && int64_t(1) << 2 * (f.halvings + 1) <= widest) ++f.halvings;
    const expr::Type type = ir::type_of(in->format);
    const int bits = ir::row(in->format).bits;
    if (below.count(id))
      f.below = std::max<int64_t>(1, below.at(id));
    else if (type == expr::Type::bits)
      f.below = int64_t(1) << std::min(bits, 24);
    else
      f.below = type == expr::Type::boolean ? 2 : 1;
    if (bits < 24) f.below = std::min(f.below, int64_t(1) << (type == expr::Type::index ? bits - 1 : bits));
    if (in->sorted) f.row = std::max<int64_t>(1, in->shape.back().value());
    out[g[id].name] = f;
  }
  return out;
}

std::vector<double> reals(const Filling& f, ir::Format format, int64_t n) {
  const int bits = std::min(ir::row(format).mantissa, 10);
  std::vector<double> out;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t m = int64_t(mix(f.seed + uint64_t(k)) >> 40) % (int64_t(2) << bits) - (int64_t(1) << bits);
    out.push_back(double(m) / double(int64_t(1) << (bits + f.halvings)));
  }
  return out;
}

std::vector<int64_t> integers(const Filling& f, int64_t n) {
  std::vector<int64_t> out;
  for (int64_t k = 0; k < n; ++k)
    out.push_back(f.row ? k % f.row * f.below / f.row : int64_t(mix(f.seed + uint64_t(k)) >> 40) % f.below);
  return out;
}

} // namespace tang::run
