// Tabulate: a dear term of coordinates alone, evaluated at each of many points that differ in other axes, is
// a map of its own: stored once, read everywhere. Rotary embeddings and their gradients share one of angles.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// The places of an axis at which a term can live: what the bounds on it alone leave.
struct Range {
  ir::Extent extent;
  int64_t low = 0;
};

Range range_of(const Comp& n, int axis) {
  Range r{n.extent(axis), 0};
  if (!r.extent.is_constant() || n.domain.size() != 1) return r;
  int64_t high = r.extent.value() - 1;
  for (auto& f : n.domain[0]) {
    if (f.axes.size() != 1 || f.axes[0].first != axis || !f.args.empty() || !f.c.is_constant()) continue;
    if (f.axes[0].second == 1) r.low = std::max(r.low, -f.c.value());
    if (f.axes[0].second == -1) high = std::min(high, f.c.value());
  }
  if (high < r.low) return {n.extent(axis), 0};
  r.extent = ir::Extent(high - r.low + 1);
  return r;
}

// Dear operations of coordinates along several axes (along one they leave the loops anyway), none inside
// another.
std::vector<Id> candidates(const Pool& p, const Comp& n) {
  Dependence depends(p, n);
  const std::vector<Id> all = expr::schedule(p, n.lift);
  std::set<Id> pure, inside;
  std::vector<Id> out;
  for (Id x : all) {
    const expr::Term& t = p[x];
    bool is_pure = t.op == Op::coord || t.op == Op::literal ||
                   (t.arity() > 0 && t.op != Op::only && t.op != Op::or_else);
    for (int k = 0; k < t.arity(); ++k) is_pure = is_pure && pure.count(t.args[size_t(k)]);
    if (is_pure) pure.insert(x);
  }
  for (size_t k = all.size(); k-- > 0;) {
    const expr::Term& t = p[all[k]];
    const Axes axes = depends.of(all[k]);
    const bool dear = pure.count(all[k]) && is_expensive(t.op) && t.type == Type::real && (axes & (axes - 1));
    if (dear && !inside.count(all[k])) out.push_back(all[k]);
    if (dear || inside.count(all[k]))
      for (int a = 0; a < t.arity(); ++a) inside.insert(t.args[size_t(a)]);
  }
  return out;
}

struct Table {
  NodeId node;
  Arg read;
};

std::optional<Table> tabulated(Edit& e, NodeId id, Comp& n, Id term) {
  Dependence depends(e.to.pool, n);
  const Axes axes = depends.of(term);
  Comp table;
  std::map<int, Form> place;
  Table out{0, {{0, 0}, {}}};
  ir::Out result;
  for (int a = 0; a < n.axis_count(); ++a) {
    if (!(axes & bit(a))) continue;
    const Range r = range_of(n, a);
    place[a] = ir::axis(int(table.points.size())) + ir::constant(r.low);
    result.axes.push_back(int(table.points.size()));
    table.points.push_back(r.extent);
    out.read.view.push_back(ir::axis(a) - ir::constant(r.low));
  }
  if (!is_worth_a_table(e.to, nominal_size(table.points, e.to.symbols), n)) return {};
  Import in(e.to.pool, n, table, [&](int a) { return place.at(a); });
  table.lift = {ordered(e.to.pool, expr::simplify(e.to.pool, in.body(term)))};
  table.outs = {result};
  if (!in.why().empty()) return {};
  out.node = e.to.add({table, "table", e.from[id].where});
  out.read.from = {out.node, 0};
  return out;
}

std::optional<std::string> tabulate_in(Edit& e, NodeId id, Comp& n) {
  if (!axes_fit(n) || is_table(e.to.pool, n)) return {};
  std::map<Id, Id> replace;
  for (Id x : candidates(e.to.pool, n))
    if (const auto t = tabulated(e, id, n, x))
      replace[x] = read_leaf(e.to.pool, Type::real, add_read(n, t->read));
  if (replace.empty()) return {};
  for (Id& l : n.lift) l = expr::substitute(e.to.pool, l, replace);
  return e.from.label({id, 0});
}

Result<Rewritten> apply_tabulate(const Graph& g) {
  Changed c = change_each(g, tabulate_in);
  if (c.what.empty()) return Refusal{"no dear term of coordinates is evaluated often enough"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph tabulate_witness() {
  ir::Builder b;
  auto x = b.input("x", {6, 5, 4});
  auto [h, i, j] = ir::axes<"h i j">();
  const auto angle = ir::to_real(ir::iota(i)) * exp2(ir::to_real(ir::iota(j)) * -0.5);
  b.output(ir::map({h, i, j}, x(h, i, j) * sin(angle)), "y");
  return b.graph();
}
} // namespace

Rule tabulate() {
  return {"tabulate",
          {"a term of coordinates alone is a map over its axes: to read that map is its body", "fusion_guarded",
           Law::exact},
          apply_tabulate,
          tabulate_witness};
}

} // namespace tang::rewrite
