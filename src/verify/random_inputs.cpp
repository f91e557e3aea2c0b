#include "tang/verify/random_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace tang::verify {

eval::Inputs random_inputs(const ir::Graph& g, uint64_t seed) {
  std::mt19937_64 rng(seed);
  // An index input selects rows of what it is a coordinate of: its values stay below the smallest such
  // dimension.
  std::map<ir::NodeId, int64_t> below;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp())
      for (auto& a : c->args) {
        const auto shape = g.shape(a.from);
        for (size_t d = 0; d < a.view.size(); ++d)
          for (auto& [r, k] : a.view[d].args) {
            auto [it, fresh] = below.try_emplace(c->args[size_t(r)].from.node, shape[d].value());
            if (!fresh) it->second = std::min(it->second, shape[d].value());
          }
      }
  eval::Inputs out;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id) {
    auto* in = g[id].input();
    if (!in) continue;
    eval::Array a(eval::bound(in->shape), ir::type_of(in->format));
    // Weights as they are initialised: a recurrence with larger ones is chaotic, and no f32 run could be
    // compared.
    int64_t widest = 1;
    if (in->kind == ir::Input::param)
      for (int64_t e : a.shape) widest = std::max(widest, a.shape.size() > 1 ? e : 1);
    const double scale = 1 / std::sqrt(double(widest));
    for (double& v : a.r) v = ir::rounded(scale * (double(rng() >> 11) * 0x1p-52 - 1), in->format);
    const int64_t limit = a.type == expr::Type::boolean ? 2
                          : below.count(id)             ? std::max<int64_t>(1, below[id])
                                                        : 1;
    for (int64_t& v : a.i) v = int64_t(rng() % uint64_t(limit));
    out[g[id].name] = std::move(a);
  }
  return out;
}

} // namespace tang::verify
