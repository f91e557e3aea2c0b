// Reshape as a view: index arithmetic (div and mod by constants) and maps that only merge dimensions become
// affine views, after splitting a fold axis where that makes them affine. No copy of the reshaped tensor is
// stored.
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
struct Split { // axis x = block * x1 + x2
  int axis;
  int64_t block;
};

struct Viewer {
  Graph& g;
  Comp& n;
  std::optional<Split> wanted = {};
  Pool& p = g.pool;

  // f = block * quotient + rest with 0 <= rest < block, term by term.
  std::optional<std::pair<Form, Form>> divided(const Form& f, int64_t block) {
    if (block < 1 || !f.c.is_constant()) return {};
    Form quotient = ir::constant(floor_div(f.c.value(), block)),
         rest = ir::constant(floor_mod(f.c.value(), block));
    for (auto& [a, k] : f.axes)
      (k % block == 0 ? quotient : rest) =
          (k % block == 0 ? quotient : rest) + ir::axis(a, k % block == 0 ? k / block : k);
    for (auto& [a, k] : f.args)
      (k % block == 0 ? quotient : rest) =
          (k % block == 0 ? quotient : rest) + ir::uniform(a, k % block == 0 ? k / block : k);
    const auto [lo, hi] = ir::range(rest, n.extents(), g.symbols);
    if (lo >= 0 && hi < block) return std::pair(quotient, rest);
    if (rest.is_pick() && n.monoid && size_t(rest.picked()) >= n.points.size() && !wanted) {
      const ir::Extent& e = n.extent(rest.picked());
      if (e.is_constant() && e.value() % block == 0) wanted = Split{rest.picked(), block};
    }
    return {};
  }

  // An index term of `source`, read at the axes `at`, as a form over n.
  std::optional<Form> form_of(const Comp& source, Id id, Import& in, const std::map<int, Form>& at) {
    const expr::Term t = p[id];
    auto operand = [&](size_t k) { return form_of(source, t.args[k], in, at); };
    auto literal = [&](size_t k) { return p[t.args[k]].op == Op::literal; };
    switch (t.op) {
    case Op::literal: return ir::constant(t.whole);
    case Op::coord: return at.at(int(t.whole));
    case Op::arg: return ir::uniform(in.take(int(t.whole)));
    case Op::neg:
      if (auto x = operand(0)) return (-1) * *x;
      return {};
    case Op::add: {
      const auto x = operand(0);
      const auto y = operand(1);
      if (x && y) return *x + *y;
      return {};
    }
    case Op::mul:
      for (size_t k : {0, 1})
        if (literal(k))
          if (auto x = operand(1 - k)) return p[t.args[k]].whole * *x;
      return {};
    case Op::div:
    case Op::mod:
      if (!literal(1)) return {};
      if (auto x = operand(0))
        if (auto d = divided(*x, p[t.args[1]].whole)) return t.op == Op::div ? d->first : d->second;
      return {};
    default: return {};
    }
  }

  void replace_uniform(int arg, const Form& by) {
    auto move = [&](Form f) {
      return ir::compose(
          f, [](int a) { return ir::axis(a); }, [&](int u) { return u == arg ? by : ir::uniform(u); });
    };
    for (auto& a : n.args)
      for (auto& f : a.view) f = move(f);
    for (auto& d : n.guards) d = ir::moved(d, move);
    n.domain = ir::moved(n.domain, move);
    // The form may use reads that were added last: put every read behind those that it uses.
    Comp out = n;
    out.args.clear();
    out.guards.clear();
    Import in(p, n, out, [](int a) { return ir::axis(a); });
    out.domain = in.domain(n.domain);
    for (Id& l : out.lift) l = in.body(l);
    n = out;
  }

  bool index_map(int arg, const Comp& m) {
    if (m.domain != ir::everywhere() || !m.outs[0].view.empty() || p[m.lift[0]].type != Type::index)
      return false;
    const auto at = picked_axes(m, n.args[size_t(arg)]);
    Import in(p, m, n, [&](int x) { return at.at(x); });
    const size_t before = n.args.size();
    const auto f = form_of(m, m.lift[0], in, at);
    if (!f) {
      n.args.resize(before);
      return false;
    }
    replace_uniform(arg, *f);
    return true;
  }

  // A map that writes one read through an output view, read where the view can be solved for its points.
  bool merged_map(int arg, const Comp& m) {
    if (m.outs[0].view.empty() || p[m.lift[0]].op != Op::arg) return false;
    std::map<int, Form> at;
    for (size_t d = 0; d < m.outs[0].view.size(); ++d) {
      const Form& out = m.outs[0].view[d];
      if (!out.is_affine()) return false;
      std::vector<std::pair<int64_t, int>> radix;
      for (auto& [a, k] : out.axes) radix.emplace_back(k, a);
      std::sort(radix.rbegin(), radix.rend());
      if (!radix.empty() && radix.back().first < 1) return false;
      Form rest = n.args[size_t(arg)].view[d] - ir::constant(out.c);
      for (auto& [k, a] : radix) {
        const auto cut = divided(rest, k);
        if (!cut) return false;
        at[a] = cut->first;
        rest = cut->second;
        const auto [lo, hi] = ir::range(at[a], n.extents(), g.symbols);
        const ir::Extent last = m.points[size_t(a)] - ir::Extent(1);
        if (lo < 0 || (hi > last.range(g.symbols).first &&
                       !(at[a].is_pick() && n.extent(at[a].picked()) == m.points[size_t(a)])))
          return false;
      }
      if (rest != ir::constant(0)) return false;
    }
    for (size_t a = 0; a < m.points.size(); ++a)
      if (!at.count(int(a))) at[int(a)] = ir::constant(0);
    Import in(p, m, n, [&](int x) { return at.at(x); });
    Id body = in.body(m.lift[0]);
    if (m.domain != ir::everywhere()) body = p.make(Op::only, {in.guard(in.domain(m.domain)), body});
    if (!in.why().empty()) return false;
    for (Id& l : n.lift) l = expr::substitute(p, l, {{read_leaf(p, p[m.lift[0]].type, arg), body}});
    return true;
  }

  void split(Split s) {
    Comp out = n;
    out.args.clear();
    out.guards.clear();
    const size_t f = size_t(s.axis) - n.points.size();
    out.folds[f] = ir::Extent(n.folds[f].value() / s.block);
    out.folds.insert(out.folds.begin() + long(f) + 1, ir::Extent(s.block));
    Import in(p, n, out, [&](int a) {
      return a == s.axis ? ir::axis(a, s.block) + ir::axis(a + 1) : ir::axis(a < s.axis ? a : a + 1);
    });
    out.domain = in.domain(n.domain);
    for (Id& l : out.lift) l = in.body(l);
    check(in.why().empty(), "splitting an axis left a coordinate without a form");
    n = out;
  }
};

bool change(Graph& g, const std::set<NodeId>& outputs, Comp& n) {
  bool fired = false;
  for (int rounds = 0; rounds < 64; ++rounds) {
    Viewer v{g, n};
    bool again = false;
    const std::set<int> indices = index_reads(n);
    for (int a = 0, count = int(n.args.size()); a < count && !again; ++a) {
      const Port from = n.args[size_t(a)].from;
      const Comp* s = g[from.node].comp();
      if (!s || !s->is_map() || !axes_fit(*s)) continue;
      const Comp m = *s;
      again = indices.count(a) ? v.index_map(a, m) : !outputs.count(from.node) && v.merged_map(a, m);
    }
    if (!again && v.wanted && n.axis_count() < 63) {
      v.split(*v.wanted);
      again = true;
    }
    if (!again) break;
    fired = true;
  }
  return fired;
}

Result<Rewritten> apply_reshape(const Graph& g) {
  bool any = false;
  for (NodeId id = 0; id < g.nodes.size() && !any; ++id) {
    const Comp* c = g[id].comp();
    if (!c) continue;
    for (auto& a : c->args) {
      const Comp* s = g[a.from.node].comp();
      if (!s || !s->is_map()) continue;
      any = any || !s->outs[0].view.empty();
      for (auto& f : a.view) any = any || !f.args.empty();
    }
    any = any || !index_reads(*c).empty();
  }
  if (!any) return Refusal{"no index is computed and no map has an output view"};
  std::set<NodeId> outputs;
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    for (auto& o : g.outputs)
      if (o.port.node < id && e.live[o.port.node]) outputs.insert(e.at(o.port).node);
    if (!axes_fit(n) || !change(e.to, outputs, n)) return {};
    return g.label({id, 0});
  });
  if (c.what.empty()) return Refusal{"no index becomes affine"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph reshape_witness() {
  ir::Builder b;
  auto x = b.input("x", {3, 2, 4}), w = b.input("w", {8, 5}), y = b.input("y", {8});
  auto [i, k, n, h, d] = ir::axes<"i k n h d">();
  // Heads merged into columns, then contracted; and columns split by div and mod.
  auto merged = ir::map_at({i, h, d}, {i, 4 * ir::Index(h) + d}, {3, 8}, x(i, h, d), "merged");
  b.output(ir::map({i, n}, sum(k, merged(i, k) * w(k, n))), "out");
  auto head = iota(k) / ir::index_literal(b, 4), within = iota(k) % ir::index_literal(b, 4);
  b.output(ir::map({i}, sum(k, x(i, head, within) * y(k))), "row");
  return b.graph();
}
} // namespace

Rule reshape() {
  return {"reshape",
          {"index arithmetic of axes is a view: k = c (k / c) + k % c, and a mixed radix has one solution",
           "view_compose_assoc", Law::exact},
          apply_reshape,
          reshape_witness};
}

} // namespace tang::rewrite
