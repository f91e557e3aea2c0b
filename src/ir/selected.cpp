#include "tang/ir/selected.hpp"

#include <algorithm>

namespace tang::ir {

std::map<NodeId, int64_t> selected(const Graph& g) {
  std::map<NodeId, int64_t> below;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp())
      for (auto& a : c->args) {
        const auto shape = g.shape(a.from);
        for (size_t d = 0; d < a.view.size(); ++d)
          for (auto& [r, k] : a.view[d].args) {
            auto [it, fresh] = below.try_emplace(c->args[size_t(r)].from.node, shape[d].value());
            if (!fresh) it->second = std::min(it->second, shape[d].value());
          }
      }
  return below;
}

} // namespace tang::ir
