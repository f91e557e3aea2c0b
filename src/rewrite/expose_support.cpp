// Expose support: what a stored map needs so that its fill is never observed.
#include <algorithm>

#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/exposed_reads.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// Where the axes of each coordinate fill a range of it like the digits of a number: the bounds of the ranges,
// none where they are the whole of the array.
std::optional<ir::Conj> filled_range(const std::vector<Form>& view, const std::vector<ir::Extent>& extents,
                                     const std::vector<ir::Extent>& shape) {
  ir::Conj out;
  std::vector<char> used(extents.size(), 0);
  for (size_t d = 0; d < view.size(); ++d) {
    if (!view[d].c.is_constant() || !view[d].args.empty()) return {};
    auto digits = view[d].axes;
    std::sort(digits.begin(), digits.end(),
              [](auto& a, auto& b) { return std::abs(a.second) < std::abs(b.second); });
    ir::Extent span = 1, low = view[d].c;
    for (auto& [a, k] : digits) {
      if (used[size_t(a)] || !(span == ir::Extent(std::abs(k)))) return {};
      if (k < 0) low = low + ir::Extent(k) * (extents[size_t(a)] - ir::Extent(1));
      span = span * extents[size_t(a)];
      used[size_t(a)] = 1;
    }
    if (!(low == ir::Extent(0))) insert(out, ir::axis(int(d)) - ir::constant(low));
    if (!(low + span == shape[d])) insert(out, ir::constant(low + span - ir::Extent(1)) - ir::axis(int(d)));
  }
  for (size_t a = 0; a < extents.size(); ++a)
    if (!used[a] && !(extents[a] == ir::Extent(1))) return {};
  return out;
}

// Does every coordinate of an array get a point?
bool fills(const std::vector<Form>& view, const std::vector<ir::Extent>& extents,
           const std::vector<ir::Extent>& shape) {
  const auto range = filled_range(view, extents, shape);
  return range && range->empty();
}

// Which coordinates of an output view exist: those that some point of the axes reaches, where `when` holds
// there.
struct Reach {
  Comp any; // points: coordinates; folds: axes

  Reach(Pool& p, const std::vector<Form>& view, const std::vector<ir::Extent>& extents,
        const std::vector<ir::Extent>& shape) {
    any.points = shape;
    any.folds = extents;
    const int n = int(shape.size());
    ir::Conj same;
    for (int d = 0; d < n; ++d) {
      const Form gap = compose(view[size_t(d)], [&](int a) { return axis(n, a); }) - ir::axis(d);
      insert(same, gap);
      insert(same, -1 * gap);
    }
    any.domain = {same};
    const Id x = p.leaf(Op::var, Type::boolean, 0), y = p.leaf(Op::var, Type::boolean, 1);
    any.monoid = ir::Monoid{"any", {expr::truth(false)}, {p.make(Op::either, {x, y})}, true};
    any.lift = {expr::yes(p)};
    ir::Out out;
    for (int d = 0; d < n; ++d) out.axes.push_back(d);
    any.outs = {out};
  }

  static Form axis(int points, int a) { return ir::axis(points + a); }

  Form at(int a) const { return axis(int(any.points.size()), a); } // of the mapped node, here
};

// Where a map exists, as an array over its coordinates.
Comp existence(Pool& p, const Comp& n, const std::vector<ir::Extent>& shape) {
  const ir::Out& own = n.outs[0];
  std::vector<Form> view = own.view;
  if (view.empty())
    for (int a : own.axes) view.push_back(ir::axis(a));
  Reach reach(p, view, n.points, shape);
  Import in(p, n, reach.any, [&](int a) { return reach.at(a); });
  reach.any.domain = intersection(reach.any.domain, in.domain(n.domain));
  reach.any.lift = {in.body(expr::present(p, n.lift[0]).when)};
  return reach.any;
}

// Where a map exists, as a term that has a value everywhere: what says so is never absent itself.
Id total(Pool& p, Comp& live, Id when) {
  if (live.domain != ir::everywhere()) when = expr::both(p, add_guard(p, live, live.domain), when);
  return has_reads(p, when) ? p.make(Op::or_else, {when, p.literal(expr::truth(false))}) : when;
}

// Each coordinate an axis of its own, all of it.
bool is_plain(const std::vector<Form>& view, const std::vector<ir::Extent>& extents,
              const std::vector<ir::Extent>& shape) {
  return std::all_of(view.begin(), view.end(), [](const Form& f) { return f.is_pick(); }) &&
         fills(view, extents, shape);
}

// Where what a recurrence emits exists, as the recurrence's `live` and the view say it: bounds of coordinates
// where each is an axis of its own, else an array beside it.
Exists reached(Graph& to, const ir::Recur& r, const ir::Recur::Emit& emit,
               const std::vector<ir::Extent>& extents) {
  Exists out;
  const bool plain = is_plain(emit.view, extents, emit.shape);
  if (r.live == ir::everywhere())
    if (const auto range = filled_range(emit.view, extents, emit.shape)) {
      out.where = {*range};
      return out;
    }
  if (plain) {
    std::vector<int> coordinate(extents.size(), 0); // an axis of extent 1 that no coordinate picks stays at 0
    for (size_t d = 0; d < emit.view.size(); ++d) coordinate[size_t(emit.view[d].picked())] = int(d) + 1;
    out.where = ir::moved(r.live, [&](const Form& f) {
      return compose(f, [&](int a) {
        const int d = coordinate[size_t(a)];
        return d ? ir::axis(d - 1) : ir::constant(0);
      });
    });
    return out;
  }
  Reach reach(to.pool, emit.view, extents, emit.shape);
  reach.any.domain =
      intersection(reach.any.domain, ir::moved(r.live, [&](const Form& f) {
                     return compose(f, [&](int a) { return reach.at(a); });
                   }));
  out.flags.push_back({to.add({std::move(reach.any), "reached", {}}), 0});
  return out;
}

// The same recurrence with the supports of its step exposed. A map of the step that is emitted and may be
// absent has an emit beside it that says where it exists.
std::optional<ir::Recur> exposed(const ir::Recur& r, bool is_read,
                                 std::vector<std::pair<uint32_t, uint32_t>>& beside) {
  bool changed = false;
  ir::Recur out = *with_step(r, [&](const Graph& step) -> std::optional<Graph> {
    Graph inner = expose_support(step);
    changed = ir::hash(inner) != ir::hash(step);
    return inner;
  });
  Graph inner = *out.step;
  std::set<Port> says;
  for (size_t k = 0; k < r.emits.size(); ++k) {
    const ir::Recur::Emit emit = out.emits[k];
    if (says.count(emit.out)) continue; // it says where another exists
    const Comp* n = inner[emit.out.node].comp();
    const bool partial =
        n && n->is_map() &&
        (n->domain != ir::everywhere() ||
         expr::present(inner.pool, n->lift[0]).when != expr::yes(inner.pool) ||
         (!n->outs[0].view.empty() && !fills(n->outs[0].view, n->points, n->outs[0].shape)));
    if (!is_read || !partial) continue;
    const Port where{inner.add({existence(inner.pool, *n, inner.shape(emit.out)), "exists", {}}), 0};
    size_t at = 0; // an emit that says so already, or a new one
    while (at < out.emits.size() && (out.emits[at].out != where || out.emits[at].view != emit.view)) ++at;
    beside.push_back({uint32_t(r.states.size() + k), uint32_t(r.states.size() + at)});
    says.insert(where);
    if (at < out.emits.size()) continue;
    ir::Recur::Emit more{where, emit.view, emit.shape};
    inner.outputs.push_back({where, "exists " + std::to_string(k), ir::Format::boolean});
    out.emits.push_back(std::move(more));
    changed = true;
  }
  if (!changed) return {};
  out.step = std::make_shared<const Graph>(std::move(inner));
  return out;
}

// What is known of where each emit of a recurrence exists. `beside`: an emit's port, and that of its map's.
void expose_emits(Graph& to, NodeId id, const std::vector<std::pair<uint32_t, uint32_t>>& beside,
                  std::map<Port, Exists>& known) {
  const ir::Recur r = *to[id].recur();
  for (size_t k = 0; k < r.emits.size(); ++k) {
    std::vector<ir::Extent> extents = r.step->shape(r.emits[k].out);
    extents.insert(extents.begin(), r.steps);
    const uint32_t port = uint32_t(r.states.size() + k);
    Exists e = reached(to, r, r.emits[k], extents);
    for (auto& [of, exists] : beside)
      if (of == port) e.flag = Port{id, exists};
    if (e.flag || !e.flags.empty() || e.where != ir::everywhere()) known[{id, port}] = std::move(e);
  }
}

// `predicates`: also those that no domain shows, as maps of their own.
Result<Rewritten> apply_expose_support(const Graph& g, bool predicates) {
  Edit e(g);
  Pool& p = e.to.pool;
  std::map<Port, Exists> alive_map; // of the new graph's ports
  std::set<NodeId> outputs;
  for (auto& o : g.outputs) outputs.insert(o.port.node);
  std::vector<char> is_read(g.nodes.size(), 0);
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (e.live[id])
      for (Port s : ir::sources(g, id)) is_read[s.node] = 1;
  std::vector<std::string> what;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    auto* n = std::get_if<Comp>(&node.what);
    if (!n) {
      std::vector<std::pair<uint32_t, uint32_t>> beside; // an emit's port, and that of where it exists
      if (auto* r = std::get_if<ir::Recur>(&node.what); r && predicates)
        if (auto next = exposed(*r, is_read[id], beside)) {
          *r = std::move(*next);
          what.push_back(g.label({id, 0}) + ", its step");
        }
      const NodeId now = e.put(id, std::move(node));
      if (predicates && is_read[id] && e.to[now].recur()) expose_emits(e.to, now, beside, alive_map);
      continue;
    }
    if (expose_reads(e.to, *n, alive_map)) {
      tighten(e.to, *n);
      what.push_back(g.label({id, 0}));
    }
    // The map itself: its predicate becomes a bool map, its body total inside its domain. An output keeps its
    // absence.
    std::optional<Node> beside;
    const ir::Out own = n->outs[0];
    const bool holes = n->is_map() && !own.view.empty() &&
                       (n->domain != ir::everywhere() || !fills(own.view, n->points, own.shape));
    if (predicates && n->is_map() && is_read[id]) {
      const expr::Present x = expr::present(p, n->lift[0]);
      if (x.when != expr::yes(p) || holes) {
        Comp live = *n;
        live.lift = {total(p, live, x.when)};
        live.domain = ir::everywhere();
        if (!own.view.empty()) live = existence(p, *n, own.shape);
        expose_reads(e.to, live, alive_map); // as the next call would: else it never comes to an end
        beside = Node{live, node.name.empty() ? "exists" : node.name + " exists", node.where};
      }
      if (x.when != expr::yes(p)) {
        const Id fill = p.number(0, p[x.value].type);
        if (!outputs.count(id)) {
          n->lift[0] = p.make(Op::or_else, {p.make(Op::only, {x.when, x.value}), fill});
          what.push_back(g.label({id, 0}) + " and where it exists");
        }
      }
    }
    const NodeId now = e.put(id, std::move(node));
    if (beside) alive_map[{now, 0}].flags.push_back({e.to.add(std::move(*beside)), 0});
  }
  if (what.empty()) return Refusal{"every read of a map repeats its support"};
  return Rewritten{e.finish(), what};
}

Graph expose_support_witness() {
  ir::Builder b;
  auto x = b.input("x", {4, 4});
  auto at = b.input("at", {4}, ir::Format::i32);
  auto [i, j] = ir::axes<"i j">();
  auto slot = at(j);
  auto picked = ir::map({i, j}, masked(slot >= ir::index_literal(b, 0), x(i, slot)), "picked");
  b.output(ir::map({i}, max(j, picked(i, j))), "top");
  return b.graph();
}
} // namespace

Graph expose_support(const Graph& g) {
  auto r = apply_expose_support(g, true);
  return r ? std::move(r->graph) : g;
}

namespace {
// Is it emitted by live steps only, or to a part of its array, which no domain shows?
bool is_partial_emit(const Graph& g, Port from) {
  const ir::Recur* r = g[from.node].recur();
  if (!r || from.port < r->states.size()) return false;
  const ir::Recur::Emit& e = r->emits[from.port - r->states.size()];
  std::vector<ir::Extent> extents = r->step->shape(e.out);
  extents.insert(extents.begin(), r->steps);
  return r->live != ir::everywhere() || !fills(e.view, extents, e.shape);
}

// Does an or_else catch the absence of a read, a bound that of an index, or a fold that of a step?
bool catches_absence(const Graph& g) {
  const auto partial = [&](Port from) {
    const Comp* c = g[from.node].comp();
    if (const ir::Recur* r = g[from.node].recur()) return from.port >= r->states.size();
    return c && c->is_map() &&
           (c->domain != ir::everywhere() || !c->outs[0].view.empty() ||
            !expr::subterms(g.pool, c->lift[0], Op::only).empty());
  };
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (const Comp* c = g[id].comp()) {
      for (int a : index_reads(*c))
        if (partial(c->args[size_t(a)].from)) return true;
      for (auto& a : c->args)
        if (c->monoid && is_partial_emit(g, a.from)) return true;
      for (Id l : c->lift)
        for (Id x : expr::subterms(g.pool, l, Op::or_else))
          for (Id r : expr::subterms(g.pool, g.pool[x].args[0], Op::arg))
            if (partial(c->args[size_t(g.pool[r].whole)].from)) return true;
    }
  return false;
}
} // namespace

Graph closed(const Graph& g) {
  auto r = apply_expose_support(g, catches_absence(g));
  return r ? std::move(r->graph) : g;
}

Rule expose_support_rule() {
  return {"expose_support",
          {"a read of a stored map that repeats the map's support never sees the fill",
           "expose_support_sound", Law::exact},
          [](const Graph& g) { return apply_expose_support(g, true); },
          expose_support_witness,
          true};
}

} // namespace tang::rewrite
