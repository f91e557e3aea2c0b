// Factor: a common factor of the terms of a sum comes out.
#include <algorithm>

#include "tang/expr/term_table.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
struct Factorer {
  Pool& p;
  bool fired = false;
  expr::TermTable done = {};

  Id operator()(Id id) {
    if (done.has(id)) return done[id];
    const expr::Term t = p[id];
    Id out = id;
    if (t.arity()) {
      std::array<Id, 3> a{};
      for (size_t k = 0; k < size_t(t.arity()); ++k) a[k] = (*this)(t.args[k]);
      out = p.over(id, a);
      if (t.op == Op::add && t.type == Type::real) out = factored(out);
    }
    done.set(id, out);
    return out;
  }

  Id factored(Id sum) {
    const Id a = p[sum].args[0], b = p[sum].args[1];
    Product x = product_of(p, a), y = product_of(p, b);
    if (!x.divisors.empty() || !y.divisors.empty()) return sum;
    std::vector<Id> common;
    for (Id f : x.factors) {
      if (!has_reads(p, f)) continue;
      auto it = std::find_if(y.factors.begin(), y.factors.end(),
                             [&](Id h) { return ordered(p, h) == ordered(p, f); });
      if (it == y.factors.end()) continue;
      common.push_back(f);
      y.factors.erase(it);
    }
    if (common.empty()) return sum;
    for (Id f : common) x.factors.erase(std::find(x.factors.begin(), x.factors.end(), f));
    fired = true;
    Id left = term_of(p, x), right = term_of(p, y);
    if (p.before(right, left)) std::swap(left, right);
    return p.make(Op::mul, {expr::product(p, common), p.make(Op::add, {left, right})});
  }
};

Result<Rewritten> apply_factor(const Graph& g) {
  // A factor that is only read once in the body cannot be common: a body without a repeated factor is
  // skipped.
  std::vector<char> site(g.nodes.size(), 0);
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* c = g[id].comp();
    if (!c) continue;
    for (Id l : c->lift) {
      std::map<Id, int> products; // factor of a product -> uses
      for (Id x : expr::schedule(g.pool, {l}))
        if (g.pool[x].op == Op::mul)
          for (size_t k : {0, 1}) site[id] |= ++products[g.pool[x].args[k]] > 1;
    }
    any |= site[id];
  }
  if (!any) return Refusal{"no factor stands twice"};
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!site[id]) return {};
    Factorer f{e.to.pool};
    std::vector<Id> next;
    for (Id l : n.lift) next.push_back(f(l));
    if (!f.fired) return {};
    n.lift = next;
    return g.label({id, 0});
  });
  if (c.what.empty()) return Refusal{"no two terms share a factor"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph factor_witness() {
  ir::Builder b;
  auto x = b.input("x", {4, 5}), y = b.input("y", {4, 5}), w = b.input("w", {5});
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, sum(j, x(i, j) * w(j) - y(i, j) * w(j))), "s");
  return b.graph();
}
} // namespace

Rule factor() {
  return {"factor", {"a b + a c = a (b + c)", "factor_common", Law::algebraic}, apply_factor, factor_witness};
}

} // namespace tang::rewrite
