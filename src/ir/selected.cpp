#include "tang/ir/selected.hpp"

#include <algorithm>

#include "tang/ir/condition.hpp"

namespace tang::ir {

namespace {
using Limits = std::map<NodeId, int64_t>;

// Of each index that one of these bounds compares with axes: values below the limit are on both sides of it.
void compared(const Graph& g, const Comp& n, const Conj& bounds, Limits& below) {
  for (auto& f : bounds) {
    if (f.args.size() != 1) continue;
    const auto [read, k] = f.args[0];
    if (k != 1 && k != -1) continue;
    const auto [lo, hi] = range(f - uniform(read, k), n.extents(), g.symbols);
    const int64_t limit = k == 1 ? 1 - lo : hi + 2; // value >= -rest, or value <= rest
    int64_t& most = below.try_emplace(n.args[size_t(read)].from.node, 1).first->second;
    most = std::max(most, limit);
  }
}

void compared(const Graph& g, const Comp& n, Limits& below) {
  for (auto& piece : n.domain) compared(g, n, piece, below);
  for (auto& guard : n.guards)
    for (auto& piece : guard) compared(g, n, piece, below);
  for (Id e : expr::schedule(g.pool, n.lift))
    if (g.pool[e].op == expr::Op::less || g.pool[e].op == expr::Op::equal)
      if (const auto bounds = as_bounds(g, e)) compared(g, n, *bounds, below);
}
} // namespace

std::map<NodeId, int64_t> selected(const Graph& g) {
  Limits below, compares;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp()) {
      compared(g, *c, compares);
      for (auto& a : c->args) {
        const auto shape = g.shape(a.from);
        for (size_t d = 0; d < a.view.size(); ++d)
          for (auto& [r, k] : a.view[d].args) {
            auto [it, fresh] = below.try_emplace(c->args[size_t(r)].from.node, shape[d].value());
            if (!fresh) it->second = std::min(it->second, shape[d].value());
          }
      }
    }
  below.insert(compares.begin(), compares.end()); // what selects something else keeps its limit
  return below;
}

} // namespace tang::ir
