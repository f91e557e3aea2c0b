// Merge siblings: folds over one space that share a read and feed the same readers become one fold, component
// by component.
#include "tang/ir/absence.hpp"
#include "tang/ir/condition.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
bool share_a_read(const Comp& a, const Comp& b) {
  for (auto& x : a.args)
    for (auto& y : b.args)
      if (x.from == y.from && x.view == y.view && !x.view.empty()) return true;
  return false;
}

bool is_sibling(Graph& g, const Comp& a, const Comp& b) {
  if (a.points != b.points || a.folds != b.folds || a.monoid->commutative != b.monoid->commutative ||
      !share_a_read(a, b))
    return false;
  if (a.lift.size() + b.lift.size() > 8) return false;
  if (ir::counts_sorted_keys(g, a) || ir::counts_sorted_keys(g, b)) return false; // a search each
  for (auto& o : b.outs)
    if (!o.view.empty() || o.axes != a.outs[0].axes) return false;
  for (auto& o : a.outs)
    if (!o.view.empty() || o.axes != b.outs[0].axes) return false;
  for (const Comp* n : {&a, &b})
    for (auto& x : n->args)
      if (ir::may_be_absent(g, x.from, ir::by_predicates)) return false;
  return true;
}

// b's components appended to a's; nothing when the terms are not present together.
std::optional<Comp> merged(Graph& g, const Comp& a, const Comp& b) {
  Pool& p = g.pool;
  Comp out = a;
  Import in(p, b, out, [](int x) { return ir::axis(x); });
  if (in.domain(b.domain) != a.domain) return {};
  const Id when = ordered(p, expr::present(p, a.lift[0]).when);
  for (Id l : a.lift)
    if (ordered(p, expr::present(p, l).when) != when) return {};
  const int64_t shift = 2 * int64_t(a.lift.size());
  for (size_t c = 0; c < b.lift.size(); ++c) {
    const Id l = in.body(b.lift[c]);
    if (!in.why().empty() || ordered(p, expr::present(p, l).when) != when) return {};
    std::map<Id, Id> to;
    for (Id v : expr::subterms(p, b.monoid->combine[c], Op::var))
      to[v] = p.leaf(Op::var, p[v].type, p[v].whole + shift);
    out.lift.push_back(l);
    out.outs.push_back(b.outs[c]);
    out.monoid->combine.push_back(expr::substitute(p, b.monoid->combine[c], to));
    out.monoid->identity.push_back(b.monoid->identity[c]);
  }
  out.monoid->name += "*" + b.monoid->name;
  return out;
}

Result<Rewritten> apply_merge_siblings(const Graph& g) {
  const auto live = alive(g);
  std::vector<std::vector<int64_t>> readers(g.nodes.size()); // nodes, and outputs as negative numbers
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (live[id])
      for (Port p : ir::sources(g, id))
        if (readers[p.node].empty() || readers[p.node].back() != id) readers[p.node].push_back(id);
  for (size_t k = 0; k < g.outputs.size(); ++k) readers[g.outputs[k].port.node].push_back(-1 - int64_t(k));
  // Groups of folds with equal readers; most graphs have few, and most of those are alone.
  std::map<std::vector<int64_t>, std::vector<NodeId>> groups;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* c = g[id].comp();
    if (live[id] && c && c->monoid && !c->folds.empty() && axes_fit(*c)) groups[readers[id]].push_back(id);
  }
  std::map<NodeId, std::vector<NodeId>> partners; // last of a family -> those before it
  Graph scratch;
  for (auto& [r, ids] : groups) {
    if (ids.size() < 2) continue;
    std::vector<char> used(ids.size(), 0);
    for (size_t a = 0; a < ids.size(); ++a) {
      if (used[a]) continue;
      std::vector<NodeId> family{ids[a]};
      for (size_t b = a + 1; b < ids.size(); ++b) {
        if (used[b] || g[ids[b]].comp()->points != g[ids[a]].comp()->points ||
            g[ids[b]].comp()->folds != g[ids[a]].comp()->folds ||
            !share_a_read(*g[ids[a]].comp(), *g[ids[b]].comp()))
          continue;
        bool apart = true;
        for (NodeId f : family) apart = apart && !reaches(g, ids[b], f);
        if (!apart) continue;
        family.push_back(ids[b]);
        used[b] = 1;
      }
      if (family.size() < 2) continue;
      const NodeId last = family.back();
      family.pop_back();
      partners[last] = family;
    }
  }
  if (partners.empty()) return Refusal{"no two folds of one space share a read and their readers"};
  Edit e(g);
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    e.copy(id);
    auto it = partners.find(id);
    if (it == partners.end()) continue;
    // Siblings have no reader before `id`: their readers are those of `id`.
    std::vector<std::pair<NodeId, Comp>> members;
    for (NodeId s : it->second) members.emplace_back(s, *e.to[e.at({s, 0}).node].comp());
    members.emplace_back(id, *e.to[e.at({id, 0}).node].comp());
    Comp all = members[0].second;
    std::vector<NodeId> in{members[0].first};
    for (size_t k = 1; k < members.size(); ++k) {
      if (!is_sibling(e.to, all, members[k].second)) continue;
      if (auto next = merged(e.to, all, members[k].second)) {
        all = *next;
        in.push_back(members[k].first);
      }
    }
    if (in.size() < 2) continue;
    const NodeId now = e.to.add({std::move(all), g[in[0]].name, g[in[0]].where});
    uint32_t port = 0;
    std::string line;
    for (NodeId s : in) {
      for (uint32_t p = 0; p < g.ports(s); ++p) e.set({s, p}, {now, port++});
      line += (line.empty() ? "" : " with ") + g.label({s, 0});
    }
    what.push_back(line);
  }
  if (what.empty()) return Refusal{"siblings differ in domain or presence"};
  return Rewritten{e.finish(), what};
}

Graph merge_siblings_witness() {
  ir::Builder b;
  auto x = b.input("x", {3, 4}), wg = b.input("gate", {4, 5}), wu = b.input("up", {4, 5});
  auto [t, k, f] = ir::axes<"t k f">();
  b.output(ir::map({t, f}, silu(sum(k, x(t, k) * wg(k, f))) * sum(k, x(t, k) * wu(k, f))), "h");
  return b.graph();
}
} // namespace

Rule merge_siblings() {
  return {
      "merge_siblings",
      {"two folds of one space are one fold under the product monoid", "merge_siblings_sound", Law::exact},
      apply_merge_siblings,
      merge_siblings_witness};
}

} // namespace tang::rewrite
