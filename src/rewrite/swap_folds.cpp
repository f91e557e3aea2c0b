// Swap folds and factor: sum_j (sum_d f(i,d) h(j,d)) v(j) = sum_d f(i,d) (sum_j h(j,d) v(j)), where it lowers
// the work.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
bool is_sum(const Pool& p, const Comp& n) {
  return is_plain_fold(p, n, Op::add) && !n.folds.empty() && n.outs[0].view.empty() && axes_fit(n);
}

double work(const Comp& n, Axes axes, const ir::Symbols& symbols) {
  std::vector<ir::Extent> e;
  for (int a = 0; a < n.axis_count(); ++a)
    if (axes & bit(a)) e.push_back(n.extent(a));
  return nominal_size(e, symbols);
}

// The two sums that replace `n`, of which factor `arg` is a sum of products; nothing if that is no gain.
struct Swapped {
  Comp moved; // over n's folds
  Comp outer; // over the inner sum's folds; its read of `hole` is one of `moved`
};

constexpr Port hole{~0u, 0};

// Which points of n read inside the inner sum, by the coordinates that n's folds leave alone. Elsewhere no
// term of n is live: its sum is 0, and what stays behind would be read outside its array.
ir::Conj reached_points(const Graph& g, const Comp& n, const Arg& read) {
  const auto shape = g.shape(read.from);
  ir::Conj out;
  for (size_t d = 0; d < read.view.size(); ++d) {
    const Form& f = read.view[d];
    if (std::any_of(f.axes.begin(), f.axes.end(), [&](auto& t) { return fold_axes(n) & bit(t.first); }))
      continue;
    insert(out, f);
    insert(out, ir::constant(shape[d] - ir::Extent(1)) - f);
  }
  return out;
}

std::optional<Swapped> swapped(Edit& e, const Comp& n, int arg, bool inner_dies) {
  Graph& g = e.to;
  Pool& p = g.pool;
  const Arg read = n.args[size_t(arg)];
  const Comp inner = *g[read.from.node].comp();
  if (expr::present(p, inner.lift[0]).when != expr::yes(p)) return {};
  for (auto& f : read.view)
    if (!f.is_affine()) return {};
  const expr::Present own = expr::present(p, n.lift[0]);
  const Product outer = product_of(p, own.value);
  const Id leaf = read_leaf(p, Type::real, arg);
  if (std::count(outer.factors.begin(), outer.factors.end(), leaf) != 1) return {};
  for (Id x : outer.factors)
    if (x != leaf && uses_arg(p, x, arg)) return {};
  for (Id x : outer.divisors)
    if (uses_arg(p, x, arg)) return {};
  const int np = int(n.points.size()), d0 = np, nd = int(inner.folds.size()), f0 = np + nd;
  Swapped out;
  Comp& t = out.moved;
  t.points = n.points;
  t.points.insert(t.points.end(), inner.folds.begin(), inner.folds.end());
  t.folds = n.folds;
  if (!axes_fit(t)) return {};
  auto place = [&](int x) { return ir::axis(x < np ? x : f0 + x - np); };
  const auto picked = picked_axes(inner, read);
  auto through = [&](int x) {
    if (size_t(x) >= inner.points.size()) return ir::axis(d0 + x - int(inner.points.size()));
    return ir::compose(picked.at(x), place);
  };
  Import self(p, n, t, place), deep(p, inner, t, through);
  const Product parts = product_of(p, inner.lift[0]);
  if (!parts.divisors.empty()) return {};
  Product moving, left;
  {
    Comp probe = t;
    Import test(p, inner, probe, through);
    std::vector<Id> bodies;
    for (Id x : parts.factors) bodies.push_back(test.body(x));
    Dependence depends(p, probe);
    for (size_t k = 0; k < bodies.size(); ++k)
      ((depends.of(bodies[k]) & fold_axes(t)) ? moving : left).factors.push_back(parts.factors[k]);
  }
  if (moving.factors.empty() ||
      std::none_of(left.factors.begin(), left.factors.end(), [&](Id x) { return has_reads(p, x); }))
    return {};
  Product lift;
  for (Id x : moving.factors) lift.factors.push_back(deep.body(x));
  for (Id x : outer.factors)
    if (x != leaf) lift.factors.push_back(self.body(x));
  for (Id x : outer.divisors) lift.divisors.push_back(self.body(x));
  const Id value = term_of(p, lift);
  t.lift = {own.when == expr::yes(p) ? value : p.make(Op::only, {self.body(own.when), value})};
  t.domain = self.domain(n.domain);
  t.monoid = n.monoid;
  // Terms of the inner sum that it does not have are left out by the outer one; the moved sum has them, if
  // its reads always find something.
  const Domain inside = deep.domain(inner.domain);
  if (Dependence(p, t).of(inside) & fold_axes(t)) return {};
  if (inside != ir::everywhere()) {
    Comp all = t;
    for (int a = 0; a < int(all.args.size()); ++a)
      if (!is_total(g, all, a)) t.domain = ir::intersection(t.domain, inside);
  }
  if (!self.why().empty() || !deep.why().empty()) return {};
  Dependence depends(p, t);
  const Axes used = (depends.of(t.lift[0]) | depends.of(t.domain)) & point_axes(t);
  t.outs = {{}};
  for (int x = 0; x < f0; ++x)
    if (used & bit(x)) t.outs[0].axes.push_back(x);
  // Work: terms of the old sums against terms of the new ones.
  const double before = work(n, ~Axes(0), g.symbols) + (inner_dies ? work(inner, ~Axes(0), g.symbols) : 0);
  const double after = work(t, used | fold_axes(t), g.symbols) +
                       nominal_size(n.points, g.symbols) * nominal_size(inner.folds, g.symbols);
  if (after >= before) return {};
  Comp& o = out.outer;
  o.points = n.points;
  o.folds = inner.folds;
  o.monoid = n.monoid;
  o.outs = n.outs;
  Import up(p, inner, o, through);
  Product top;
  for (Id x : left.factors) top.factors.push_back(up.body(x));
  Arg state{hole, {}};
  for (int x : t.outs[0].axes) state.view.push_back(ir::axis(x));
  // Points that the moved sum does not have are dropped from its node.
  std::map<int, int> now;
  std::vector<ir::Extent> points;
  for (int x : t.outs[0].axes) {
    now[x] = int(points.size());
    points.push_back(t.points[size_t(x)]);
  }
  for (int f = 0; f < int(t.folds.size()); ++f) now[f0 + f] = int(points.size()) + f;
  Comp small = t;
  small.args.clear();
  small.guards.clear();
  small.points = points;
  Import pack(p, t, small, [&](int x) { return ir::axis(now.at(x)); });
  small.lift = {pack.body(t.lift[0])};
  small.domain = pack.domain(t.domain);
  for (size_t k = 0; k < small.outs[0].axes.size(); ++k) small.outs[0].axes[k] = int(k);
  if (!up.why().empty() || !pack.why().empty()) return {};
  o.domain = ir::pruned(ir::intersection({reached_points(g, n, read)}, up.domain(inner.domain)), o.extents(),
                        g.symbols);
  t = small;
  top.factors.push_back(read_leaf(p, Type::real, add_read(o, state)));
  o.lift = {term_of(p, top)};
  return out;
}

Result<Rewritten> apply_swap_folds(const Graph& g) {
  const auto live = alive(g);
  std::vector<int> readers(g.nodes.size(), 0);
  for (auto& o : g.outputs) ++readers[o.port.node];
  std::vector<char> site(g.nodes.size(), 0);
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* n = g[id].comp();
    if (!live[id]) continue;
    for (Port p : ir::sources(g, id)) ++readers[p.node];
    if (!n || !is_sum(g.pool, *n)) continue;
    for (auto& a : n->args)
      if (auto* s = g[a.from.node].comp(); s && is_sum(g.pool, *s)) any = (site[id] = 1);
  }
  if (!any) return Refusal{"no sum has a sum as a factor"};
  Edit e(g);
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    bool done = false;
    if (site[id]) {
      const Comp n = *node.comp();
      for (size_t a = 0; a < n.args.size() && !done; ++a) {
        const Comp* s = e.to[n.args[a].from.node].comp();
        if (!s || !is_sum(e.to.pool, *s)) continue;
        NodeId old = 0;
        for (auto& r : g[id].comp()->args)
          if (e.at(r.from) == n.args[a].from) old = r.from.node;
        auto next = swapped(e, n, int(a), readers[old] == 1);
        if (!next) continue;
        const NodeId moved = e.to.add({next->moved, node.name, node.where});
        for (auto& r : next->outer.args)
          if (r.from == hole) r.from = {moved, 0};
        e.put(id, {next->outer, node.name, node.where});
        what.push_back(g.label({id, 0}));
        done = true;
      }
    }
    if (!done) e.put(id, std::move(node));
  }
  if (what.empty()) return Refusal{"swapping the sums does not lower the work"};
  return Rewritten{e.finish(), what};
}

Graph swap_folds_witness() {
  ir::Builder b;
  auto q = b.input("q", {16, 3}), k = b.input("k", {16, 3}), v = b.input("v", {16, 2});
  auto [i, j, d, c] = ir::axes<"i j d c">();
  b.output(ir::map({i, c}, sum(j, sum(d, relu(q(i, d)) * relu(k(j, d))) * v(j, c))), "out");
  return b.graph();
}
} // namespace

Rule swap_folds() {
  return {
      "swap_folds_and_factor",
      {"sum_j (sum_d f_d h_jd) v_j = sum_d f_d (sum_j h_jd v_j)", "swap_folds_and_factor", Law::algebraic},
      apply_swap_folds,
      swap_folds_witness};
}

} // namespace tang::rewrite
