#include "tang/rewrite/measure.hpp"

#include <algorithm>

#include "tang/ir/worth.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr int64_t usual = 4096;     // of a symbol without an upper bound
constexpr int64_t short_fold = 128; // the longest fold of a contraction that a tile recomputes

double nominal(const ir::Extent& e, const ir::Symbols& symbols) {
  if (e.is_constant()) return double(e.value());
  std::map<std::string, bool> names;
  e.symbols(names);
  ir::Bindings at;
  for (auto& [name, used] : names) {
    auto it = symbols.find(name);
    const ir::SymbolFacts f = it == symbols.end() ? ir::SymbolFacts{} : it->second;
    at[name] = std::min(f.upper, std::max(f.lower, usual));
  }
  return double(e.bind(at).value());
}

int bytes_of(Type t) { return t == Type::boolean ? 1 : 4; }

// Every dimension picks another point axis of the reader, and all of them are picked.
bool reads_point_for_point(const Comp& reader, const Arg& a) {
  if (a.view.size() != reader.points.size()) return false;
  Axes seen = 0;
  for (auto& f : a.view) {
    if (!f.is_pick() || (seen & bit(f.picked()))) return false;
    seen |= bit(f.picked());
  }
  return true;
}

std::vector<std::vector<NodeId>> readers_of(const Graph& g, const std::vector<char>& live) {
  std::vector<std::vector<NodeId>> out(g.nodes.size());
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!live[id]) continue;
    for (Port p : ir::sources(g, id))
      if (out[p.node].empty() || out[p.node].back() != id) out[p.node].push_back(id);
  }
  return out;
}

bool is_short_product(const Graph& g, const Comp& n) {
  if (!is_plain_fold(g.pool, n, Op::add) || n.folds.empty() || !axes_fit(n)) return false;
  int64_t terms = 1; // of all fold axes together: a split head dimension is still one dimension
  for (auto& e : n.folds) {
    if (!e.is_constant() || e.value() > short_fold) return false;
    terms *= e.value();
  }
  if (terms > short_fold) return false;
  Dependence depends(g.pool, n);
  std::vector<Axes> read;
  for (Id x : expr::schedule(g.pool, {n.lift[0]}))
    if (g.pool[x].op == Op::arg) read.push_back(depends.of(x));
  const Axes fold = fold_axes(n);
  // Two groups of points that share the fold axis: neither read has all of the other's axes.
  for (Axes a : read)
    for (Axes b : read)
      if ((a & fold) && (b & fold) && (a & ~b) && (b & ~a)) return true;
  // One row against many: a product of two reads of the fold axis all the same.
  int both = 0;
  for (Axes a : read) both += (a & fold) != 0;
  return both >= 2;
}
} // namespace

double nominal_size(const std::vector<ir::Extent>& shape, const ir::Symbols& symbols) {
  double out = 1;
  for (auto& e : shape) out *= nominal(e, symbols);
  return out;
}

double nominal_size(const Graph& g, Port p) { return nominal_size(g.shape(p), g.symbols); }

double terms_of(const Graph& g) {
  double out = 0;
  for (auto& n : g.nodes) {
    if (auto* r = n.recur()) out += nominal_size({r->steps}, g.symbols) * terms_of(*r->step);
    if (auto* c = n.comp()) out += nominal_size(c->extents(), g.symbols);
  }
  return out;
}

bool is_short_contraction(const Graph& g, NodeId fold) {
  const Comp* n = g[fold].comp();
  if (!n || !is_short_product(g, *n)) return false;
  double read = 0, largest = 0;
  for (Port p : ir::sources(g, fold)) {
    read += nominal_size(g, p);
    largest = std::max(largest, nominal_size(g, p));
  }
  return ir::is_cheaper_evaluated(nominal_size(g, {fold, 0}), read, largest);
}

bool is_table(const Pool& p, const Comp& map) {
  return map.is_map() && map.args.empty() && map.guards.empty() && map.domain == ir::everywhere() &&
         map.points.size() > 1 && is_expensive(p[map.lift[0]].op);
}

bool is_worth_a_table(const Graph& g, double words, const Comp& reader) {
  constexpr double few = 4; // a table is a small part of what is read, and of what is evaluated
  double largest = 0;
  for (auto& a : reader.args) largest = std::max(largest, nominal_size(g, a.from));
  return few * words <= largest && few * words <= nominal_size(reader.extents(), g.symbols);
}

std::optional<NodeId> finished_fold(const Graph& g, NodeId map) {
  const Comp* m = g[map].comp();
  if (!m || !m->is_map() || !axes_fit(*m)) return {};
  std::optional<NodeId> best;
  for (auto& a : m->args) {
    const Comp* f = g[a.from.node].comp();
    if (!f || f->is_map() || !reads_point_for_point(*m, a)) continue;
    const bool last = std::none_of(m->args.begin(), m->args.end(), [&](const Arg& o) {
      return o.from.node != a.from.node && reaches(g, o.from.node, a.from.node);
    });
    // A sibling port of the same fold is at hand only at the same point or at fewer axes of it.
    const bool near = std::all_of(m->args.begin(), m->args.end(), [&](const Arg& o) {
      return o.from.node != a.from.node ||
             std::all_of(o.view.begin(), o.view.end(), [](const Form& x) { return x.is_pick(); });
    });
    if (last && near && (!best || a.from.node > *best)) best = a.from.node;
  }
  return best;
}

double Cost::bytes() const {
  double out = 0;
  for (auto& a : stored) out += a.bytes;
  return out;
}

Cost cost_of(const Graph& g) {
  const auto live = alive(g);
  const auto readers = readers_of(g, live);
  std::set<NodeId> outputs;
  for (auto& o : g.outputs) outputs.insert(o.port.node);
  std::vector<char> shared(g.nodes.size(), 0), epilogue(g.nodes.size(), 0);
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* c = g[id].comp();
    if (!live[id] || !c || c->is_map() || outputs.count(id) || !is_short_product(g, *c)) continue;
    bool once = readers[id].size() == 1;
    if (once) {
      const Comp* r = g[readers[id][0]].comp();
      once = r && !r->is_map();
      if (once) { // by a fold whose components that read it have no axis that the read lacks
        Dependence depends(g.pool, *r);
        for (size_t a = 0; a < r->args.size() && once; ++a) {
          if (r->args[a].from.node != id) continue;
          for (size_t k = 0; k < r->lift.size() && once; ++k)
            if (uses_arg(g.pool, r->lift[k], int(a)))
              once = !((own_axes(*r, k) | fold_axes(*r)) & ~depends.of_arg(int(a)));
        }
      }
    }
    shared[id] = once || is_short_contraction(g, id);
  }
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (live[id])
      if (auto f = finished_fold(g, id)) epilogue[id] = !shared[*f];
  Cost out;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!live[id] || g[id].input() || shared[id]) continue;
    out.kernels += !epilogue[id];
    const Comp* c = g[id].comp();
    // A fold that only its epilogues read stays in registers.
    const bool kept = c && !c->is_map() && !outputs.count(id) && !readers[id].empty() &&
                      std::all_of(readers[id].begin(), readers[id].end(), [&](NodeId r) {
                        return epilogue[r] && finished_fold(g, r) == std::optional(id);
                      });
    if (kept) continue;
    for (uint32_t p = 0; p < g.ports(id); ++p) {
      const bool read = std::any_of(readers[id].begin(), readers[id].end(),
                                    [&](NodeId r) {
                                      const auto s = ir::sources(g, r);
                                      return std::find(s.begin(), s.end(), Port{id, p}) != s.end();
                                    }) ||
                        std::any_of(g.outputs.begin(), g.outputs.end(), [&](auto& o) {
                          return o.port == Port{id, p};
                        });
      if (!read) continue;
      std::string name = g.label({id, p});
      for (auto& o : g.outputs)
        if (o.port == Port{id, p}) name = o.name;
      out.stored.push_back(
          {{id, p}, name, g.shape({id, p}), nominal_size(g, {id, p}) * bytes_of(g.type({id, p}))});
    }
  }
  return out;
}

} // namespace tang::rewrite
