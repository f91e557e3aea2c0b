#include "tang/verify/random_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tang/ir/selected.hpp"

namespace tang::verify {

eval::Inputs random_inputs(const ir::Graph& g, uint64_t seed) {
  std::mt19937_64 rng(seed);
  const std::map<ir::NodeId, int64_t> below = ir::selected(g);
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
                          : below.count(id)             ? std::max<int64_t>(1, below.at(id))
                                                        : 1;
    for (int64_t& v : a.i) v = int64_t(rng() % uint64_t(limit));
    for (size_t row = 0; in->sorted && row < a.i.size(); row += size_t(a.shape.back()))
      std::sort(a.i.begin() + int64_t(row), a.i.begin() + int64_t(row) + a.shape.back());
    out[g[id].name] = std::move(a);
  }
  return out;
}

} // namespace tang::verify
