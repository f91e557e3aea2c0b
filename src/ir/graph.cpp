#include "tang/ir/graph.hpp"

#include <algorithm>
#include <functional>

#include "tang/base/hash.hpp"
#include "tang/base/match.hpp"
#include "tang/expr/order.hpp"

namespace tang::ir {

Comp::Comp() = default;
Comp::Comp(const Comp&) = default;
Comp::Comp(Comp&&) noexcept = default;
Comp& Comp::operator=(const Comp&) = default;
Comp& Comp::operator=(Comp&&) noexcept = default;
Comp::~Comp() = default;
Recur::Recur() = default;
Recur::Recur(const Recur&) = default;
Recur::Recur(Recur&&) noexcept = default;
Recur& Recur::operator=(const Recur&) = default;
Recur& Recur::operator=(Recur&&) noexcept = default;
Recur::~Recur() = default;
Graph::Graph() = default;
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

std::vector<Extent> Comp::extents() const {
  std::vector<Extent> out = points;
  out.insert(out.end(), folds.begin(), folds.end());
  return out;
}

bool same(const Monoid& a, const Monoid& b) {
  if (a.name != b.name || a.combine != b.combine || a.commutative != b.commutative || a.size() != b.size())
    return false;
  for (size_t c = 0; c < a.size(); ++c)
    if (!identical(a.identity[c], b.identity[c])) return false;
  return true;
}

size_t Graph::ports(NodeId id) const {
  return std::visit(Match{[](const Input&) { return size_t(1); }, [](const Comp& c) { return c.lift.size(); },
                          [](const Recur& r) { return r.states.size() + r.emits.size(); }},
                    nodes[id].what);
}

std::vector<Extent> Graph::shape(Port p) const {
  return std::visit(Match{[](const Input& n) { return n.shape; },
                          [&](const Comp& c) {
                            const Out& o = c.outs[p.port];
                            if (!o.view.empty()) return o.shape;
                            std::vector<Extent> s;
                            for (int a : o.axes) s.push_back(c.points[size_t(a)]);
                            return s;
                          },
                          [&](const Recur& r) {
                            if (p.port < r.states.size()) return r.step->shape({r.states[p.port].in, 0});
                            return r.emits[p.port - r.states.size()].shape;
                          }},
                    nodes[p.node].what);
}

Type Graph::type(Port p) const {
  return std::visit(Match{[](const Input& n) { return type_of(n.format); },
                          [&](const Comp& c) { return pool[c.lift[p.port]].type; },
                          [&](const Recur& r) {
                            if (p.port < r.states.size()) return r.step->type({r.states[p.port].in, 0});
                            return r.step->type(r.emits[p.port - r.states.size()].out);
                          }},
                    nodes[p.node].what);
}

std::string Graph::label(Port p) const {
  const Node& n = nodes[p.node];
  std::string out = n.name.empty() ? "value " + std::to_string(p.node) : n.name;
  return ports(p.node) > 1 ? out + "." + std::to_string(p.port) : out;
}

std::vector<Port> sources(const Graph& g, NodeId id) {
  std::vector<Port> out;
  std::visit(Match{[](const Input&) {},
                   [&](const Comp& c) {
                     for (auto& a : c.args) out.push_back(a.from);
                   },
                   [&](const Recur& r) {
                     for (auto& s : r.states)
                       if (s.init) out.push_back(*s.init);
                     for (auto& a : r.args) out.push_back(a.from);
                   }},
             g.nodes[id].what);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Normalisation: what makes equal comprehensions equal.

namespace {

struct Normaliser {
  Graph& g;
  Comp& c;
  std::vector<uint64_t> keys = {}; // structural hash of each old read

  uint64_t key(const Form& f) const {
    uint64_t h = f.c.hash();
    for (auto& [a, k] : f.axes) h = combine(h, combine(uint64_t(a) + 1, uint64_t(k)));
    uint64_t s = 0;
    for (auto& [a, k] : f.args) s += combine(keys[size_t(a)], uint64_t(k));
    return combine(h, s);
  }

  uint64_t key(const Domain& d) const {
    uint64_t h = 1;
    for (auto& piece : d) {
      uint64_t s = 2;
      for (auto& f : piece) s += mix(key(f));
      h += mix(s);
    }
    return h;
  }

  std::set<int> used_guards() const {
    std::set<int> out;
    for (Id l : c.lift)
      for (Id h : expr::subterms(g.pool, l, Op::holds)) out.insert(int(g.pool[h].whole));
    return out;
  }

  std::set<int> used_args(const std::set<int>& guards) const {
    std::set<int> out;
    std::function<void(int)> need = [&](int a) {
      if (!out.insert(a).second) return;
      for (auto& f : c.args[size_t(a)].view)
        for (auto& t : f.args) need(t.first);
    };
    auto need_domain = [&](const Domain& d) {
      for (auto& piece : d)
        for (auto& f : piece)
          for (auto& t : f.args) need(t.first);
    };
    for (Id l : c.lift)
      for (Id a : expr::subterms(g.pool, l, Op::arg)) need(int(g.pool[a].whole));
    for (int k : guards) need_domain(c.guards[size_t(k)]);
    need_domain(c.domain);
    return out;
  }

  // Equal reads become one first: a form that uses both has one key, however often it is normalised.
  void merge_equal_reads() {
    std::vector<int> first(c.args.size());
    auto renamed = [&](const Form& f) {
      Form out{f.c, f.axes, {}};
      for (auto& [a, k] : f.args) out = out + uniform(first[size_t(a)], k);
      return out;
    };
    bool any = false;
    for (size_t a = 0; a < c.args.size(); ++a) {
      for (auto& f : c.args[a].view) f = renamed(f);
      size_t b = 0;
      while (b < a && !(c.args[b].from == c.args[a].from && c.args[b].view == c.args[a].view)) ++b;
      first[a] = int(b);
      any |= b != a;
    }
    if (!any) return;
    for (auto& d : c.guards) d = moved(d, renamed);
    c.domain = moved(c.domain, renamed);
    for (Id& l : c.lift) {
      std::map<Id, Id> to;
      for (Id x : expr::subterms(g.pool, l, Op::arg))
        to[x] = g.pool.leaf(Op::arg, g.pool[x].type, first[size_t(g.pool[x].whole)]);
      l = expr::substitute(g.pool, l, to);
    }
  }

  void run() {
    c.domain = normal(c.domain);
    merge_equal_reads();
    for (auto& a : c.args) {
      uint64_t h = combine(g.nodes[a.from.node].hash, a.from.port);
      for (auto& f : a.view) h = combine(h, key(f));
      keys.push_back(h);
    }
    const std::set<int> guards = used_guards();
    const std::set<int> args = used_args(guards);
    // Reads: depth first (a read used by a view comes before it), then by structural key.
    std::vector<int> by_key(args.begin(), args.end());
    std::stable_sort(by_key.begin(), by_key.end(),
                     [&](int a, int b) { return keys[size_t(a)] < keys[size_t(b)]; });
    std::vector<int> place(c.args.size(), -1);
    std::vector<Arg> kept;
    auto renamed = [&](const Form& f) {
      Form out{f.c, f.axes, {}};
      for (auto& [a, k] : f.args) out = out + uniform(place[size_t(a)], k);
      return out;
    };
    std::function<void(int)> put = [&](int a) {
      if (place[size_t(a)] >= 0) return;
      Arg out{c.args[size_t(a)].from, {}};
      std::vector<int> inner;
      for (auto& f : c.args[size_t(a)].view)
        for (auto& t : f.args) inner.push_back(t.first);
      std::stable_sort(inner.begin(), inner.end(),
                       [&](int x, int y) { return keys[size_t(x)] < keys[size_t(y)]; });
      for (int x : inner) put(x);
      for (auto& f : c.args[size_t(a)].view) out.view.push_back(renamed(f));
      for (size_t k = 0; k < kept.size(); ++k)
        if (kept[k].from == out.from && kept[k].view == out.view) {
          place[size_t(a)] = int(k);
          return;
        }
      place[size_t(a)] = int(kept.size());
      kept.push_back(std::move(out));
    };
    for (int a : by_key) put(a);
    std::vector<int> guard_place(c.guards.size(), -1);
    std::vector<int> guards_by_key(guards.begin(), guards.end());
    std::stable_sort(guards_by_key.begin(), guards_by_key.end(),
                     [&](int a, int b) { return key(c.guards[size_t(a)]) < key(c.guards[size_t(b)]); });
    std::vector<Domain> kept_guards;
    for (int k : guards_by_key) {
      Domain d = moved(c.guards[size_t(k)], renamed);
      auto it = std::find(kept_guards.begin(), kept_guards.end(), d);
      guard_place[size_t(k)] = int(it - kept_guards.begin());
      if (it == kept_guards.end()) kept_guards.push_back(std::move(d));
    }
    c.domain = moved(c.domain, renamed);
    for (Id& l : c.lift) {
      std::map<Id, Id> to;
      for (Id x : expr::subterms(g.pool, l, Op::arg))
        to[x] = g.pool.leaf(Op::arg, g.pool[x].type, place[size_t(g.pool[x].whole)]);
      for (Id x : expr::subterms(g.pool, l, Op::holds))
        to[x] = g.pool.leaf(Op::holds, Type::boolean, guard_place[size_t(g.pool[x].whole)]);
      l = expr::ordered(g.pool, expr::substitute(g.pool, l, to));
    }
    c.args = std::move(kept);
    c.guards = std::move(kept_guards);
    if (c.monoid)
      for (Id& e : c.monoid->combine) e = expr::ordered(g.pool, e);
  }
};

uint64_t hash_domain(const Domain& d) {
  uint64_t h = d.size();
  for (auto& piece : d) {
    h = combine(h, piece.size());
    for (auto& f : piece) h = combine(h, f.hash());
  }
  return h;
}

uint64_t hash_extents(const std::vector<Extent>& e) {
  uint64_t h = e.size();
  for (auto& x : e) h = combine(h, x.hash());
  return h;
}

uint64_t hash_view(const std::vector<Form>& v) {
  uint64_t h = v.size();
  for (auto& f : v) h = combine(h, f.hash());
  return h;
}

uint64_t hash_out(const Out& o) {
  uint64_t h = combine(hash_view(o.view), hash_extents(o.shape));
  for (int a : o.axes) h = combine(h, uint64_t(a));
  return h;
}

uint64_t hash_node(const Graph& g, const Node& n) {
  auto port = [&](Port p) { return combine(g.nodes[p.node].hash, p.port); };
  return std::visit(
      Match{[&](const Input& x) {
              const uint64_t h = combine(hash_extents(x.shape), uint64_t(x.format) * 4 + x.kind);
              return combine(hash_of(n.name), x.sorted ? combine(h, 1) : h);
            },
            [&](const Comp& c) {
              uint64_t h = combine(hash_extents(c.points), hash_extents(c.folds));
              for (auto& a : c.args) h = combine(h, combine(port(a.from), hash_view(a.view)));
              for (auto& d : c.guards) h = combine(h, hash_domain(d));
              h = combine(h, hash_domain(c.domain));
              for (Id l : c.lift) h = combine(h, g.pool[l].hash);
              for (auto& o : c.outs) h = combine(h, hash_out(o));
              if (!c.monoid) return combine(h, 0);
              for (size_t k = 0; k < c.monoid->size(); ++k) {
                const Value& v = c.monoid->identity[k];
                h = combine(h,
                            combine(g.pool[c.monoid->combine[k]].hash, combine(bits_of(v.r), uint64_t(v.i))));
              }
              return combine(h, 1);
            },
            [&](const Recur& r) {
              // The step's nodes by their own hashes: another order of the same step is the same recurrence.
              auto inner = [&](Port p) { return combine(r.step->nodes[p.node].hash, p.port); };
              uint64_t h = combine(r.steps.hash(), combine(r.reverse, hash_domain(r.live)));
              for (auto& s : r.states)
                h = combine(h, combine(s.init ? port(*s.init) : 1, combine(inner({s.in, 0}), inner(s.out))));
              for (auto& a : r.args)
                h = combine(h, combine(port(a.from), combine(hash_view(a.view), inner({a.in, 0}))));
              for (auto& e : r.emits)
                h = combine(h, combine(hash_view(e.view), combine(inner(e.out), hash_extents(e.shape))));
              return combine(h, inner({r.time, 0}));
            }},
      n.what);
}

bool equal(const Out& a, const Out& b) { return a.axes == b.axes && a.view == b.view && a.shape == b.shape; }

bool equal(const Arg& a, const Arg& b) { return a.from == b.from && a.view == b.view; }

template <class T> bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (!equal(a[k], b[k])) return false;
  return true;
}

bool equal(const Comp& a, const Comp& b) {
  return a.points == b.points && a.folds == b.folds && equal(a.args, b.args) && a.guards == b.guards &&
         a.domain == b.domain && a.lift == b.lift && equal(a.outs, b.outs) &&
         bool(a.monoid) == bool(b.monoid) && (!a.monoid || same(*a.monoid, *b.monoid));
}

} // namespace

NodeId Graph::add(Node n) {
  if (auto* c = std::get_if<Comp>(&n.what)) {
    check(c->lift.size() == c->outs.size() && (!c->monoid || c->monoid->size() == c->lift.size()),
          "components of " + n.name);
    Normaliser{*this, *c}.run();
  }
  n.hash = hash_node(*this, n);
  auto [from, to] = find_.equal_range(n.hash);
  for (auto it = from; it != to; ++it) {
    const Node& o = nodes[it->second];
    if (n.input() && o.input())
      throw Error(n.where, "two inputs are called '" + n.name + "'", {{"the first one", o.where}},
                  "give each input its own name");
    if (n.comp() && o.comp() && equal(*n.comp(), *o.comp())) return it->second;
  }
  nodes.push_back(std::move(n));
  const NodeId id = NodeId(nodes.size() - 1);
  find_.emplace(nodes.back().hash, id);
  return id;
}

void Graph::set_sorted(NodeId id) {
  Node& n = nodes[id];
  for (NodeId x = id + 1; x < nodes.size(); ++x)
    for (Port p : sources(*this, x)) check(p.node != id, "an input was read before it was declared sorted");
  std::get<Input>(n.what).sorted = true;
  n.hash = hash_node(*this, n);
  find_.emplace(n.hash, id);
}

uint64_t hash(const Graph& g) {
  uint64_t h = g.outputs.size();
  for (auto& o : g.outputs)
    h = combine(h, combine(hash_of(o.name),
                           combine(g.nodes[o.port.node].hash, combine(o.port.port, uint64_t(o.format)))));
  return h;
}

} // namespace tang::ir
