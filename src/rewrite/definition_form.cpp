// Definition form: an absorbing fold as the fold of its base, then sums of act * lift.
#include <algorithm>

#include "tang/ir/absorb.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// The base's components as a monoid of their own.
ir::Monoid base_monoid(Pool& p, const ir::Monoid& m, const std::vector<int>& base) {
  ir::Monoid out{m.name + " base", {}, {}, m.commutative};
  std::map<Id, Id> to;
  for (size_t k = 0; k < base.size(); ++k)
    for (int side : {0, 1}) {
      const Type t = m.identity[size_t(base[k])].type;
      to[p.leaf(Op::var, t, 2 * base[k] + side)] = p.leaf(Op::var, t, 2 * int64_t(k) + side);
    }
  for (int b : base) {
    out.identity.push_back(m.identity[size_t(b)]);
    out.combine.push_back(expr::substitute(p, m.combine[size_t(b)], to));
  }
  return out;
}

struct Former {
  Edit& e;
  Pool& p = e.to.pool;
  const Comp& n;
  const std::string& name;
  Where where;

  // A map over the points `own` and the folds of n.
  std::pair<Comp, std::map<int, int>> space(const std::vector<int>& own) {
    Comp m;
    std::map<int, int> place;
    for (int a : own) {
      place[a] = int(m.points.size());
      m.points.push_back(n.points[size_t(a)]);
    }
    for (size_t f = 0; f < n.folds.size(); ++f) {
      place[int(n.points.size() + f)] = int(m.points.size());
      m.points.push_back(n.folds[f]);
    }
    ir::Out out;
    for (size_t a = 0; a < m.points.size(); ++a) out.axes.push_back(int(a));
    m.outs = {out};
    return {m, place};
  }

  Form at(const std::map<int, int>& place, int a) { return ir::axis(place.at(a)); }

  Port map_of(const std::vector<int>& own, Id body, const std::string& kind) {
    auto [m, place] = space(own);
    const auto& here = place;
    Import in(p, n, m, [&](int a) { return at(here, a); });
    m.lift = {in.body(body)};
    m.domain = in.domain(n.domain);
    check(in.why().empty(), "a lift had no form over its own axes");
    return {e.to.add({m, name + " " + kind, where}), 0};
  }

  // Reads a map of `map_of` at n's own axes, in a comp over the points `own` and folds.
  Id read_map(Comp& to, Port from, const std::vector<int>& map_own, const std::map<int, int>& place) {
    Arg a{from, {}};
    for (int x : map_own) a.view.push_back(at(place, x));
    for (size_t f = 0; f < n.folds.size(); ++f) a.view.push_back(at(place, int(n.points.size() + f)));
    return read_leaf(p, e.to.type(from), add_read(to, a));
  }
};

Result<Rewritten> formed(const Graph& g, const std::function<bool(NodeId)>& wanted) {
  Edit e(g);
  std::vector<std::string> what;
  std::string why = "no absorbing fold";
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    const Comp* old = g[id].comp();
    if (!old || old->is_map() || old->lift.size() < 2 || !wanted(id) || !axes_fit(*old)) {
      e.copy(id);
      continue;
    }
    auto& plan = ir::absorbing(e.to, *old->monoid);
    if (!plan || plan->base.empty()) {
      why = plan ? "the fold has no base" : plan.why();
      e.copy(id);
      continue;
    }
    const Node node = e.node(id);
    const Comp n = *node.comp();
    Pool& p = e.to.pool;
    // The axes of a component's base are its own; all base components share them.
    std::vector<int> rows = n.outs[size_t(plan->base[0])].axes;
    bool same = true;
    for (int b : plan->base) same = same && n.outs[size_t(b)].axes == rows;
    Axes row_axes = own_axes(n, size_t(plan->base[0]));
    Dependence depends(p, n);
    bool fits = !(depends.of(n.domain) & point_axes(n) & ~row_axes);
    std::vector<expr::Present> lifts;
    for (Id l : n.lift) lifts.push_back(expr::present(p, l));
    for (auto& l : lifts)
      fits = fits && ordered(p, l.when) == ordered(p, lifts[0].when) &&
             !(depends.of(l.when) & point_axes(n) & ~row_axes);
    if (!same || !fits) {
      why = "components of the base differ in axes or presence";
      e.copy(id);
      continue;
    }
    Former f{e, p, n, node.name, node.where};
    auto with_presence = [&](Id value) {
      return lifts[0].when == expr::yes(p) ? value : p.make(Op::only, {lifts[0].when, value});
    };
    std::vector<Port> scores;
    for (int b : plan->base) scores.push_back(f.map_of(rows, with_presence(lifts[size_t(b)].value), "score"));
    // The base's fold reads the score maps.
    std::map<int, int> place;
    Comp base;
    for (int a : rows) {
      place[a] = int(base.points.size());
      base.points.push_back(n.points[size_t(a)]);
    }
    base.folds = n.folds;
    for (size_t k = 0; k < n.folds.size(); ++k) place[int(n.points.size() + k)] = int(rows.size() + k);
    {
      Import in(p, n, base, [&](int a) { return ir::axis(place.at(a)); });
      base.domain = in.domain(n.domain);
    }
    base.monoid = base_monoid(p, *n.monoid, plan->base);
    for (size_t k = 0; k < plan->base.size(); ++k) {
      base.lift.push_back(f.read_map(base, scores[k], rows, place));
      ir::Out out;
      for (size_t a = 0; a < rows.size(); ++a) out.axes.push_back(int(a));
      base.outs.push_back(out);
    }
    const NodeId base_id = e.to.add({base, node.name + " base", node.where});
    for (size_t k = 0; k < plan->base.size(); ++k)
      e.set({id, uint32_t(plan->base[k])}, {base_id, uint32_t(k)});
    std::map<Id, Port> acts; // equal acts share a map
    for (int c : plan->added) {
      Port& weight = acts.try_emplace(plan->act.at(c), Port{0, ~0u}).first->second;
      if (weight.port == ~0u) {
        auto [m, here] = f.space(rows);
        const auto& at_map = here;
        std::map<Id, Id> to;
        for (size_t k = 0; k < plan->base.size(); ++k) {
          const int b = plan->base[k];
          const Type t = n.monoid->identity[size_t(b)].type;
          Arg own{{base_id, uint32_t(k)}, {}};
          for (int a : rows) own.view.push_back(ir::axis(at_map.at(a)));
          const Id now = read_leaf(p, t, add_read(m, own)), score = f.read_map(m, scores[k], rows, at_map);
          // The combined base is the whole fold's base; an own base is the term's score.
          to[expr::simplify(p, n.monoid->combine[size_t(b)])] = now;
          to[n.monoid->combine[size_t(b)]] = now;
          to[p.leaf(Op::var, t, 2 * b)] = score;
          to[p.leaf(Op::var, t, 2 * b + 1)] = now;
        }
        m.lift = {expr::substitute(p, plan->act.at(c), to)};
        Import in(p, n, m, [&](int a) { return ir::axis(at_map.at(a)); });
        m.domain = in.domain(n.domain);
        weight = {e.to.add({m, node.name + " weight", node.where}), 0};
      }
      Comp sum;
      std::map<int, int> at_sum;
      for (int a : n.outs[size_t(c)].axes) {
        at_sum[a] = int(sum.points.size());
        sum.points.push_back(n.points[size_t(a)]);
      }
      sum.folds = n.folds;
      for (size_t k = 0; k < n.folds.size(); ++k)
        at_sum[int(n.points.size() + k)] = int(sum.points.size() + k);
      Import in(p, n, sum, [&](int a) { return ir::axis(at_sum.at(a)); });
      const Id lift = in.body(lifts[size_t(c)].value), w = f.read_map(sum, weight, rows, at_sum);
      const bool unit = p[lift].op == Op::literal && p[lift].r == 1;
      sum.lift = {unit ? w : p.make(Op::mul, {w, lift})};
      // An act that reads no score leaves the weight where there is no term.
      if (const Id when = lifts[0].when; when != expr::yes(p))
        sum.lift[0] = p.make(Op::only, {in.body(when), sum.lift[0]});
      sum.domain = in.domain(n.domain);
      const expr::E x{&p, p.leaf(Op::var, Type::real, 0)}, y{&p, p.leaf(Op::var, Type::real, 1)};
      sum.monoid = ir::Monoid{"sum", {expr::real(0)}, {(x + y).id}, true};
      ir::Out out;
      for (size_t a = 0; a < sum.points.size(); ++a) out.axes.push_back(int(a));
      sum.outs = {out};
      e.set({id, uint32_t(c)}, {e.to.add({sum, node.name, node.where}), 0});
    }
    what.push_back(g.label({id, 0}));
  }
  if (what.empty()) return Refusal{why};
  return Rewritten{e.finish(), what};
}

Graph definition_form_witness() {
  ir::Builder b;
  auto s = b.input("s", {4, 6}), v = b.input("v", {6, 3});
  auto [i, j, c] = ir::axes<"i j c">();
  auto state = fold(ir::online_softmax(2), j, {masked(j <= i, s(i, j)), 1.0, v(j, c)});
  b.output(ir::map({i, c}, ratio(state[2], state[1])), "out");
  b.output(ir::map({i}, state[0] + log(state[1])), "lse");
  return b.graph();
}
} // namespace

Result<Rewritten> definition_form(const Graph& g, NodeId node) {
  return formed(g, [&](NodeId id) { return id == node; });
}

namespace {
// Components become folds of their own: that a term is absent because one of them reads a partial map is
// said first.
Result<Rewritten> all_formed(const Graph& g) {
  return formed(expose_support(g), [](NodeId) { return true; });
}
} // namespace

Graph definition_form(const Graph& g) {
  auto r = all_formed(g);
  return r ? std::move(r->graph) : g;
}

Rule definition_form_rule() {
  return {"definition_form",
          {"an absorbing fold is the fold of its base b, then sum act(own base, b) * lift for every other "
           "component",
           "definition_form", Law::algebraic},
          all_formed,
          definition_form_witness,
          true};
}

} // namespace tang::rewrite
