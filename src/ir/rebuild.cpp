// Walking and copying graphs: canonical order, binding of symbols, and the copier that rules use.
#include <algorithm>
#include <functional>

#include "tang/base/match.hpp"
#include "tang/ir/graph.hpp"

namespace tang::ir {

Id Copier::moved(Id term) {
  return expr::transplant(from_.pool, term, to.pool,
                          [&](const expr::Term& t) { return to.pool.leaf(t.op, t.type, t.whole); });
}

Port Copier::at(Port old) const {
  auto& row = ports_[old.node];
  check(old.port < row.size() && row[old.port], "a read of " + from_.label(old) + " before it was copied");
  return *row[old.port];
}

void Copier::set(Port old, Port now) {
  auto& row = ports_[old.node];
  if (row.size() <= old.port) row.resize(from_.ports(old.node));
  row[old.port] = now;
}

Node Copier::imported(NodeId id) {
  Node n = from_.nodes[id];
  std::visit(Match{[](Input&) {},
                   [&](Comp& c) {
                     for (auto& a : c.args) a.from = at(a.from);
                     for (auto& l : c.lift) l = moved(l);
                     if (c.monoid)
                       for (auto& e : c.monoid->combine) e = moved(e);
                   },
                   [&](Recur& r) {
                     for (auto& s : r.states)
                       if (s.init) s.init = at(*s.init);
                     for (auto& a : r.args) a.from = at(a.from);
                   }},
             n.what);
  return n;
}

NodeId Copier::copy(NodeId id) {
  const NodeId now = to.add(imported(id));
  for (uint32_t p = 0; p < from_.ports(id); ++p) set({id, p}, {now, p});
  return now;
}

Rebuilt Copier::finish() {
  Rebuilt out;
  for (auto& o : from_.outputs) to.outputs.push_back({at(o.port), o.name, o.format});
  for (auto& row : ports_) out.map.push_back(row.empty() || !row[0] ? -1 : int64_t(row[0]->node));
  out.graph = std::move(to);
  return out;
}

namespace {
// Nodes that the outputs need, operands first.
std::vector<NodeId> walk(const Graph& g) {
  std::vector<char> seen(g.nodes.size(), 0);
  std::vector<NodeId> out;
  std::function<void(NodeId)> visit = [&](NodeId id) {
    if (seen[id]) return;
    seen[id] = 1;
    if (auto* r = g[id].recur()) { // in declaration order
      for (auto& s : r->states)
        if (s.init) visit(s.init->node);
      for (auto& a : r->args) visit(a.from.node);
    }
    if (auto* c = g[id].comp()) // reads are in structural order already
      for (auto& a : c->args) visit(a.from.node);
    out.push_back(id);
  };
  for (auto& o : g.outputs) visit(o.port.node);
  // Inputs have identity: an unused one stays, in the order of names.
  std::vector<NodeId> unused;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].input() && !seen[id]) unused.push_back(id);
  std::sort(unused.begin(), unused.end(), [&](NodeId a, NodeId b) { return g[a].name < g[b].name; });
  out.insert(out.end(), unused.begin(), unused.end());
  return out;
}
} // namespace

namespace {
// The step's nodes in the order of the walk from what it carries and emits.
Recur canonical(const Recur& r) {
  Graph step = *r.step;
  step.outputs.clear();
  for (auto& s : r.states) step.outputs.push_back({s.out, "", Format::f32});
  for (auto& e : r.emits) step.outputs.push_back({e.out, "", Format::f32});
  Rebuilt inner = canonical(step);
  inner.graph.outputs = r.step->outputs;
  auto now = [&](NodeId old) { return NodeId(inner.map[old]); };
  Recur out = r;
  for (auto& o : inner.graph.outputs) o.port.node = now(o.port.node);
  for (auto& s : out.states) s.in = now(s.in), s.out.node = now(s.out.node);
  for (auto& a : out.args) a.in = now(a.in);
  for (auto& e : out.emits) e.out.node = now(e.out.node);
  out.time = now(r.time);
  out.step = std::make_shared<const Graph>(std::move(inner.graph));
  return out;
}
} // namespace

Rebuilt canonical(const Graph& g) {
  Copier copier(g);
  for (NodeId id : walk(g)) {
    if (!g[id].recur()) {
      copier.copy(id);
      continue;
    }
    Node n = copier.imported(id);
    n.what = canonical(std::get<Recur>(n.what));
    const NodeId now = copier.to.add(std::move(n));
    for (uint32_t p = 0; p < g.ports(id); ++p) copier.set({id, p}, {now, p});
  }
  return copier.finish();
}

void redirect(Graph& g, const std::map<Port, Port>& instead) {
  if (instead.empty()) return;
  auto now = [&](Port& p) {
    for (auto it = instead.find(p); it != instead.end(); it = instead.find(p)) p = it->second;
  };
  for (Node& n : g.nodes) {
    if (auto* c = std::get_if<Comp>(&n.what))
      for (auto& a : c->args) now(a.from);
    if (auto* r = std::get_if<Recur>(&n.what)) {
      for (auto& s : r->states)
        if (s.init) now(*s.init);
      for (auto& a : r->args) now(a.from);
    }
  }
  for (auto& o : g.outputs) now(o.port);
}

Rebuilt bind(const Graph& g, const Bindings& values) {
  for (auto& [name, v] : values) {
    auto it = g.symbols.find(name);
    if (it == g.symbols.end()) continue;
    const SymbolFacts& f = it->second;
    if (v < f.lower || v > f.upper)
      throw Error({}, "symbol '" + name + "' is bound to " + std::to_string(v),
                  {{"declared between " + std::to_string(f.lower) + " and " + std::to_string(f.upper), {}}},
                  "bind a value inside the declared range, or widen the declaration");
    if (v % f.divisor)
      throw Error({}, "symbol '" + name + "' is bound to " + std::to_string(v),
                  {{"declared divisible by " + std::to_string(f.divisor), {}}}, "bind a multiple of it");
  }
  auto extents = [&](std::vector<Extent>& e) {
    for (auto& x : e) x = x.bind(values);
  };
  auto forms = [&](std::vector<Form>& v) {
    for (auto& f : v) f.c = f.c.bind(values);
  };
  auto domain = [&](const Domain& d) {
    return moved(d, [&](Form f) {
      f.c = f.c.bind(values);
      return f;
    });
  };
  Copier copier(g);
  for (auto& [name, v] : values) copier.to.symbols.erase(name);
  for (NodeId id : walk(g)) {
    Node n = copier.imported(id);
    std::visit(Match{[&](Input& x) { extents(x.shape); },
                     [&](Comp& c) {
                       extents(c.points);
                       extents(c.folds);
                       for (auto& a : c.args) forms(a.view);
                       for (auto& d : c.guards) d = domain(d);
                       c.domain = pruned(domain(c.domain), c.extents(), copier.to.symbols);
                       for (auto& o : c.outs) forms(o.view), extents(o.shape);
                     },
                     [&](Recur& r) {
                       r.steps = r.steps.bind(values);
                       r.live = domain(r.live);
                       for (auto& a : r.args) forms(a.view);
                       for (auto& e : r.emits) forms(e.view), extents(e.shape);
                       Rebuilt inner = bind(*r.step, values);
                       auto now = [&](NodeId old) {
                         check(inner.map[old] >= 0, "a step input that the step does not use");
                         return NodeId(inner.map[old]);
                       };
                       for (auto& s : r.states) s.in = now(s.in), s.out.node = now(s.out.node);
                       for (auto& a : r.args) a.in = now(a.in);
                       for (auto& e : r.emits) e.out.node = now(e.out.node);
                       r.time = now(r.time);
                       r.step = std::make_shared<const Graph>(std::move(inner.graph));
                     }},
               n.what);
    const NodeId now = copier.to.add(std::move(n));
    for (uint32_t p = 0; p < g.ports(id); ++p) copier.set({id, p}, {now, p});
  }
  return copier.finish();
}

void validate(const Graph& g) {
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    for (Port p : sources(g, id)) {
      check(p.node < id, "operands come before users: " + g.label({id, 0}));
      check(p.port < g.ports(p.node), "a port that does not exist: " + g.label(p));
    }
    const Comp* c = g[id].comp();
    if (!c) continue;
    for (size_t a = 0; a < c->args.size(); ++a) {
      check(c->args[a].view.size() == g.shape(c->args[a].from).size(),
            "rank of a read in " + g.label({id, 0}));
      for (auto& f : c->args[a].view) {
        for (auto& [x, k] : f.axes)
          check(x >= 0 && x < c->axis_count(), "axis of a view in " + g.label({id, 0}));
        for (auto& [x, k] : f.args) {
          check(size_t(x) < a, "a view uses a later read in " + g.label({id, 0}));
          check(g.type(c->args[size_t(x)].from) == Type::index,
                "a gather by a value that is no index in " + g.label({id, 0}));
        }
      }
    }
    for (auto& o : c->outs)
      for (int x : o.axes)
        check(size_t(x) < c->points.size(), "an output axis that is no point of " + g.label({id, 0}));
  }
}

} // namespace tang::ir
