// Keep row: statistics of a row that an exponent adds up (m + log l) become one stored number a row.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
struct Addend {
  double scale;
  Id atom;
};

void flatten(const Pool& p, Id id, double scale, std::vector<Addend>& out) {
  const expr::Term& t = p[id];
  if (t.op == Op::add) {
    flatten(p, t.args[0], scale, out);
    flatten(p, t.args[1], scale, out);
  } else if (t.op == Op::neg) {
    flatten(p, t.args[0], -scale, out);
  } else if (t.op == Op::mul && p[t.args[0]].op == Op::literal) {
    flatten(p, t.args[1], scale * p[t.args[0]].r, out);
  } else if (t.op == Op::mul && p[t.args[1]].op == Op::literal) {
    flatten(p, t.args[0], scale * p[t.args[1]].r, out);
  } else {
    out.push_back({scale, id});
  }
}

Id sum_of(Pool& p, const std::vector<Addend>& terms) {
  std::optional<expr::E> out;
  for (auto& a : terms) {
    const expr::E atom{&p, a.atom}, term = a.scale == 1 ? atom : a.scale == -1 ? -atom : atom * a.scale;
    out = out ? *out + term : term;
  }
  return out ? out->id : p.literal(0.0);
}

// Reads only totals of folds, and something that costs more than to read it.
bool is_row_statistic(Graph& g, const Comp& n, Id atom) {
  bool reads = false;
  for (Id x : expr::schedule(g.pool, {atom})) {
    const expr::Term t = g.pool[x];
    if (t.op == Op::coord || t.op == Op::holds || t.op == Op::only || t.op == Op::or_else) return false;
    if (t.op != Op::arg) continue;
    const Comp* c = g[n.args[size_t(t.whole)].from.node].comp();
    if (!c || !c->monoid || !is_total(g, n, int(t.whole))) return false;
    reads = true;
  }
  return reads;
}

std::optional<std::string> kept_row(Edit& e, NodeId id, Comp& n) {
  Graph& g = e.to;
  Pool& p = g.pool;
  if (!n.monoid || n.folds.empty() || !axes_fit(n)) return {};
  std::map<Id, Id> replace;
  for (size_t c = 0; c < n.lift.size(); ++c)
    for (Id x : expr::subterms(p, n.lift[c], Op::exp2)) {
      const Id exponent = p[x].args[0];
      if (replace.count(exponent)) continue;
      std::vector<Addend> terms;
      flatten(p, exponent, 1, terms);
      Dependence depends(p, n);
      const Axes all = depends.of(exponent);
      std::map<Axes, std::vector<Addend>> groups;
      for (auto& a : terms)
        if (const Axes r = depends.of(a.atom); r && r != all && is_row_statistic(g, n, a.atom))
          groups[r].push_back(a);
      for (auto& [rows, group] : groups) {
        bool costly = false;
        for (auto& a : group)
          for (Id y : expr::schedule(p, {a.atom})) costly |= is_expensive(p[y].op);
        if (group.size() < 2 || !costly) continue;
        Comp row;
        std::map<int, int> place;
        ir::Out out;
        Arg read{{0, 0}, {}};
        for (int a = 0; a < n.axis_count(); ++a)
          if (rows & bit(a)) {
            place[a] = int(row.points.size());
            out.axes.push_back(int(row.points.size()));
            row.points.push_back(n.extent(a));
            read.view.push_back(ir::axis(a));
          }
        Import in(p, n, row, [&](int a) { return ir::axis(place.at(a)); });
        row.lift = {in.body(sum_of(p, group))};
        row.outs = {out};
        if (!in.why().empty()) continue;
        read.from = {g.add({row, "row", e.from[id].where}), 0};
        // It must be free to store: an epilogue of the fold that made the statistics. Else it would be
        // spliced back.
        const auto made = finished_fold(g, read.from.node);
        if (!made || is_short_contraction(g, *made)) continue;
        std::vector<Addend> rest;
        for (auto& a : terms)
          if (std::none_of(group.begin(), group.end(),
                           [&](auto& b) { return b.atom == a.atom && b.scale == a.scale; }))
            rest.push_back(a);
        rest.push_back({1, read_leaf(p, Type::real, add_read(n, read))});
        replace[exponent] = sum_of(p, rest);
        break;
      }
    }
  if (replace.empty()) return {};
  for (Id& l : n.lift) l = expr::substitute(p, l, replace);
  return e.from.label({id, 0});
}

Result<Rewritten> apply_keep_row(const Graph& g) {
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size() && !any; ++id)
    if (auto* c = g[id].comp(); c && c->monoid)
      for (Id l : c->lift)
        for (Id x : expr::schedule(g.pool, {l}))
          any = any || (g.pool[x].op == Op::exp2 && !expr::subterms(g.pool, x, Op::log2).empty());
  if (!any) return Refusal{"no exponent takes a logarithm"};
  Changed c = change_each(g, kept_row);
  if (c.what.empty()) return Refusal{"no exponent adds up statistics of a row"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph keep_row_witness() {
  ir::Builder b;
  auto s = b.input("s", {5, 4}), u = b.input("u", {5, 3});
  auto [i, j, c] = ir::axes<"i j c">();
  auto top = max(j, s(i, j)), total = sum(j, exp(s(i, j) - top));
  b.output(ir::map({j, c}, sum(i, exp(s(i, j) - top - log(total)) * u(i, c))), "dv");
  return b.graph();
}
} // namespace

Rule keep_row() {
  return {
      "keep_row",
      {"exp2(A - m - log2 l) = exp2(A - r), r = m + log2 l kept for each row", "keep_row", Law::algebraic},
      apply_keep_row,
      keep_row_witness};
}

} // namespace tang::rewrite
