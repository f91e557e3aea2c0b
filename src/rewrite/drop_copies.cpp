// Drop copies: an output that only renames another port is that port.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
std::optional<Port> copied(const Graph& g, Port p) {
  const Comp* m = g[p.node].comp();
  if (!m || !m->is_map() || m->domain != ir::everywhere() || !m->outs[0].view.empty() ||
      g.pool[m->lift[0]].op != Op::arg)
    return {};
  const Arg& a = m->args[size_t(g.pool[m->lift[0]].whole)];
  if (!g[a.from.node].comp() || g.shape(a.from) != g.shape(p)) return {};
  for (size_t d = 0; d < a.view.size(); ++d)
    if (!a.view[d].is_pick() || a.view[d].picked() != m->outs[0].axes[d]) return {};
  return a.from;
}

Result<Rewritten> apply_drop_copies(const Graph& g) {
  std::set<Port> taken;
  for (auto& o : g.outputs) taken.insert(o.port);
  std::vector<std::string> what;
  Graph out = g;
  for (auto& o : out.outputs) {
    const auto from = copied(g, o.port);
    if (!from || taken.count(*from)) continue; // two outputs are two buffers
    what.push_back("output " + o.name + " is " + g.label(*from));
    o.port = *from;
    taken.insert(*from);
  }
  if (what.empty()) return Refusal{"no output is a copy"};
  return Rewritten{std::move(out), what};
}

Graph drop_copies_witness() {
  ir::Builder b;
  auto x = b.input("x", {4, 5});
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, sum(j, x(i, j))), "y");
  return b.graph();
}
} // namespace

Rule drop_copies() {
  return {"drop_copies",
          {"a map that reads one port at its own point is that port", "view_compose_id", Law::exact},
          apply_drop_copies,
          drop_copies_witness};
}

} // namespace tang::rewrite
