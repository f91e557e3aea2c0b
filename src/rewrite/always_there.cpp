#include "tang/rewrite/always_there.hpp"

#include <algorithm>
#include <set>

#include "tang/expr/absence.hpp"

namespace tang::rewrite {

using ir::Extent;

bool lies_inside(const std::vector<Form>& view, const std::vector<Extent>& extents,
                 const std::vector<Extent>& shape, const ir::Symbols& symbols) {
  for (size_t d = 0; d < view.size(); ++d) {
    if (!view[d].is_affine()) return false;
    if (view[d].is_pick() && extents[size_t(view[d].picked())] == shape[d]) continue;
    const Form left = ir::constant(shape[d] - Extent(1)) - view[d];
    if (ir::range(view[d], extents, symbols).first < 0 || ir::range(left, extents, symbols).first < 0)
      return false;
  }
  return true;
}

bool reaches_all(const std::vector<Form>& view, const std::vector<Extent>& extents,
                 const std::vector<Extent>& shape) {
  std::set<int> used;
  for (size_t d = 0; d < view.size(); ++d) {
    if (!view[d].is_affine() || !(view[d].c == Extent(0))) return false;
    std::vector<std::pair<int64_t, int>> digits;
    for (auto& [a, k] : view[d].axes) {
      if (!used.insert(a).second) return false;
      digits.push_back({k, a});
    }
    std::sort(digits.begin(), digits.end());
    Extent span = 1;
    for (auto& [k, a] : digits) {
      if (!(span == Extent(k))) return false;
      span = span * extents[size_t(a)];
    }
    if (!(span == shape[d])) return false;
  }
  return true;
}

namespace {
bool emits_all(const ir::Recur& r, uint32_t port) {
  if (port < r.states.size()) return true;
  const ir::Recur::Emit& e = r.emits[port - r.states.size()];
  std::vector<Extent> extents = r.step->shape(e.out);
  extents.insert(extents.begin(), r.steps);
  Graph step = *r.step;
  return r.live == ir::everywhere() && reaches_all(e.view, extents, e.shape) && always_there(step, e.out);
}

bool there(Graph& g, Port p, std::map<Port, bool>& known) {
  if (auto it = known.find(p); it != known.end()) return it->second;
  bool& out = known[p] = true;
  if (const ir::Recur* r = g[p.node].recur()) return out = emits_all(*r, p.port);
  const Comp* c = g[p.node].comp();
  if (!c) return true;
  const ir::Out& o = c->outs[p.port];
  if (!o.view.empty() && !reaches_all(o.view, c->points, o.shape)) return out = false;
  if (!c->is_map()) return true;
  const std::vector<Arg> args = c->args;
  const std::vector<Extent> extents = c->extents();
  if (c->domain != ir::everywhere() || expr::present(g.pool, c->lift[p.port]).when != expr::yes(g.pool))
    return out = false;
  return out = std::all_of(args.begin(), args.end(), [&](const Arg& a) {
           return lies_inside(a.view, extents, g.shape(a.from), g.symbols) && there(g, a.from, known);
         });
}
} // namespace

bool always_there(Graph& g, Port p) {
  std::map<Port, bool> known;
  return there(g, p, known);
}

} // namespace tang::rewrite
