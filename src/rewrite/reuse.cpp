// Reuse: a fold whose term computes what a stored map already holds reads it.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// Removes `part` from `whole`, factor by factor.
bool take_factors(Pool& p, Product& whole, const Product& part) {
  auto take = [&](std::vector<Id>& from, Id x) {
    auto it = std::find_if(from.begin(), from.end(), [&](Id y) { return ordered(p, y) == ordered(p, x); });
    if (it == from.end()) return false;
    from.erase(it);
    return true;
  };
  for (Id x : part.factors)
    if (!take(whole.factors, x)) return false;
  for (Id x : part.divisors)
    if (!take(whole.divisors, x)) return false;
  return true;
}

// The body of `m` inside n's lifts replaced by a read of m at `port`.
bool reuse_in(Graph& g, const Comp& m, Port port, Comp& n) {
  Pool& p = g.pool;
  for (auto& key : m.args) {
    if (key.view.size() != m.points.size()) continue;
    std::map<int, size_t> dim;            // point axis of m -> dimension of the key
    const auto shape = g.shape(key.from); // where the key has a point, so has m
    for (size_t d = 0; d < key.view.size(); ++d)
      if (key.view[d].is_pick() && shape[d] == m.points[size_t(key.view[d].picked())])
        dim[key.view[d].picked()] = d;
    if (dim.size() != m.points.size()) continue;
    for (size_t a = 0, count = n.args.size(); a < count; ++a) {
      if (n.args[a].from != key.from) continue;
      const std::vector<Form> view = n.args[a].view;
      Comp trial = n;
      Import in(p, m, trial, [&](int x) { return view[dim.at(x)]; });
      const Id body = ordered(p, in.body(m.lift[0]));
      if (!in.why().empty()) continue;
      Arg read{port, {}};
      for (int x : m.outs[0].axes) read.view.push_back(view[dim.at(x)]);
      const Id leaf = read_leaf(p, p[m.lift[0]].type, add_read(trial, read));
      const Product part = product_of(p, body);
      bool fired = false;
      for (Id& l : trial.lift) {
        const Id o = ordered(p, l);
        const Id direct = expr::substitute(p, o, {{body, leaf}});
        if (direct != o) {
          l = direct;
          fired = true;
          continue;
        }
        const expr::Present x = expr::present(p, o);
        Product whole = product_of(p, x.value);
        if (part.factors.size() + part.divisors.size() < 2 || !take_factors(p, whole, part)) continue;
        whole.factors.push_back(leaf);
        const Id out = term_of(p, whole);
        l = x.when == expr::yes(p) ? out : p.make(Op::only, {x.when, out});
        fired = true;
      }
      if (!fired) continue;
      n = trial;
      return true;
    }
  }
  return false;
}

bool is_candidate(Graph& g, NodeId id) {
  const Comp* m = g[id].comp();
  if (!m || !m->is_map() || m->domain != ir::everywhere() || !m->outs[0].view.empty() || !axes_fit(*m))
    return false;
  int ops = 0;
  for (Id x : expr::schedule(g.pool, {m->lift[0]})) {
    const Op op = g.pool[x].op;
    if (op == Op::only || op == Op::or_else || op == Op::holds) return false;
    ops += g.pool[x].arity() > 0;
  }
  return ops > 0;
}

Result<Rewritten> apply_reuse(const Graph& g) {
  std::set<NodeId> outputs;
  for (auto& o : g.outputs)
    if (g[o.port.node].comp() && g[o.port.node].comp()->is_map()) outputs.insert(o.port.node);
  if (outputs.empty()) return Refusal{"no output is a map"};
  std::vector<NodeId> stored; // new ids
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    for (NodeId o : outputs)
      if (o < id && e.live[o] &&
          (stored.empty() || std::find(stored.begin(), stored.end(), e.at({o, 0}).node) == stored.end()) &&
          is_candidate(e.to, e.at({o, 0}).node))
        stored.push_back(e.at({o, 0}).node);
    if (!n.monoid || n.folds.empty() || !axes_fit(n)) return {};
    std::optional<std::string> out;
    for (NodeId m : stored) {
      const Comp* at = e.to[m].comp();
      const bool shares = std::any_of(n.args.begin(), n.args.end(), [&](const Arg& a) {
        return std::any_of(at->args.begin(), at->args.end(), [&](const Arg& b) { return a.from == b.from; });
      });
      if (!shares) continue;
      const Comp map = *at;
      if (reuse_in(e.to, map, {m, 0}, n)) out = g.label({id, 0}) + " reads " + e.to.label({m, 0});
    }
    return out;
  });
  if (c.what.empty()) return Refusal{"no fold computes what an output holds"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph reuse_witness() {
  ir::Builder b;
  auto x = b.input("x", {4, 5}), y = b.input("y", {4, 5});
  auto [i, j] = ir::axes<"i j">();
  auto u = sum(j, x(i, j)), l = sum(j, exp(y(i, j)));
  b.output(ir::map({i}, ratio(u, l)), "o");
  b.output(ir::map({j}, sum(i, ratio(u, l) * y(i, j))), "t");
  return b.graph();
}
} // namespace

Rule reuse() {
  return {"reuse",
          {"a subterm that equals an output's body, or a product that contains it, reads the output",
           "reuse_sound", Law::algebraic},
          apply_reuse,
          reuse_witness};
}

} // namespace tang::rewrite
