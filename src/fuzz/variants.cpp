#include "tang/fuzz/variants.hpp"

#include <algorithm>
#include <cmath>

#include "tang/base/number.hpp"
#include "tang/rewrite/import.hpp"

namespace tang::fuzz {

using namespace ir;

namespace {
// Every node once more along a new first axis.
Comp repeated(Pool& p, const Comp& from) {
  Comp to;
  to.points = from.points;
  to.points.insert(to.points.begin(), Extent(batch_of_many));
  to.folds = from.folds;
  to.monoid = from.monoid;
  rewrite::Import in(p, from, to, [](int a) { return axis(a + 1); });
  to.domain = in.domain(from.domain);
  for (Id l : from.lift) to.lift.push_back(in.body(l));
  for (auto& a : to.args) a.view.insert(a.view.begin(), axis(0));
  for (auto out : from.outs) {
    for (int& a : out.axes) ++a;
    out.axes.insert(out.axes.begin(), 0);
    if (!out.view.empty()) {
      for (auto& f : out.view) f = compose(f, [](int a) { return axis(a + 1); });
      out.view.insert(out.view.begin(), axis(0));
      out.shape.insert(out.shape.begin(), Extent(batch_of_many));
    }
    to.outs.push_back(out);
  }
  return to;
}

std::optional<Graph> repeated(const Graph& g) {
  for (auto& n : g.nodes)
    if (n.recur()) return {}; // its batch axis is one of the states
  rewrite::Edit e(g);
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node n = e.node(id);
    if (auto* in = std::get_if<Input>(&n.what))
      in->shape.insert(in->shape.begin(), Extent(batch_of_many));
    else
      n.what = repeated(e.to.pool, *n.comp());
    e.put(id, std::move(n));
  }
  return e.finish();
}

// Inputs that only comprehensions read, and that no output replaces; no keys: their last dimension is sorted.
std::set<NodeId> movable(const Graph& g) {
  std::set<NodeId> out;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* in = g[id].input(); in && in->shape.size() > 1 && !in->sorted) out.insert(id);
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].recur())
      for (Port p : sources(g, id)) out.erase(p.node);
  for (auto& o : g.outputs) {
    out.erase(o.port.node);
    for (NodeId id = 0; id < g.nodes.size(); ++id)
      if (g[id].input() && g[id].name == o.name) out.erase(id);
  }
  return out;
}

eval::Array turned(const eval::Array& a) { // dimensions in the opposite order
  std::vector<int64_t> shape(a.shape.rbegin(), a.shape.rend()), at(shape.size());
  eval::Array out(shape, a.type);
  for (int64_t n = 0; n < a.size(); ++n) {
    int64_t to = 0, left = n;
    for (size_t d = a.shape.size(); d-- > 0;) at[d] = left % a.shape[d], left /= a.shape[d];
    for (size_t d = a.shape.size(); d-- > 0;) to = to * a.shape[d] + at[d];
    if (!a.r.empty()) out.r[size_t(to)] = a.r[size_t(n)];
    if (!a.i.empty()) out.i[size_t(to)] = a.i[size_t(n)];
  }
  return out;
}

std::optional<Case> permuted(const Case& c, Case out) {
  const std::set<NodeId> ids = movable(out.graph);
  if (ids.empty()) return {};
  rewrite::Edit e(out.graph);
  for (NodeId id = 0; id < out.graph.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node n = e.node(id);
    if (auto* in = std::get_if<Input>(&n.what); in && ids.count(id)) {
      std::reverse(in->shape.begin(), in->shape.end());
      out.inputs[n.name] = turned(c.inputs.at(n.name));
    }
    if (auto* k = std::get_if<Comp>(&n.what)) {
      std::set<Port> moved;
      for (NodeId x : ids)
        if (e.live[x] && x < id) moved.insert(e.at({x, 0}));
      for (auto& a : k->args)
        if (moved.count(a.from)) std::reverse(a.view.begin(), a.view.end());
    }
    e.put(id, std::move(n));
  }
  out.graph = e.finish();
  return out;
}

std::optional<Case> batch(const Case& c, Case out) {
  auto g = repeated(out.graph);
  if (!g) return {};
  out.graph = std::move(*g);
  for (auto& [name, f] : out.schedule.groups) {
    schedule::GroupFields next = f;
    next.role.clear(), next.tile.clear();
    for (auto& [a, r] : f.role) next.role[a + 1] = r;
    for (auto& [a, t] : f.tile) next.tile[a + 1] = t;
    f = next;
  }
  std::vector<eval::Inputs> parts;
  for (int64_t b = 0; b < batch_of_many; ++b) parts.push_back(part_of_batch(c, b));
  for (auto& [name, a] : out.inputs) {
    std::vector<int64_t> shape = a.shape;
    shape.insert(shape.begin(), batch_of_many);
    eval::Array all(shape, a.type);
    all.r.clear(), all.i.clear();
    for (auto& part : parts) {
      const eval::Array& x = part.at(name);
      all.r.insert(all.r.end(), x.r.begin(), x.r.end());
      all.i.insert(all.i.end(), x.i.begin(), x.i.end());
    }
    a = std::move(all);
  }
  return out;
}
} // namespace

const char* word(Variant v) {
  static const char* const words[] = {"as drawn", "other splits", "other tiles", "inputs permuted",
                                      "batch of many"};
  return words[size_t(v)];
}

eval::Inputs part_of_batch(const Case& c, int64_t b) {
  return b ? inputs_for(ir::bind(c.graph, c.bindings).graph, c.integer, 4000 + uint64_t(b)) : c.inputs;
}

std::optional<Case> varied(const Case& c, Variant v) {
  Case out = c;
  out.graph = given_graph(c);
  out.optimize = c.optimize && !c.late;
  out.late = false;
  out.bindings.clear();
  auto each_group = [&](auto change) {
    for (auto& n : out.graph.nodes)
      if (n.comp()) change(out.schedule.groups[n.name]);
    return out;
  };
  switch (v) {
  case Variant::splits:
    return each_group([&](schedule::GroupFields& f) {
      f.split = f.split == 2 ? 3 : 2;
      f.ways = f.ways == 3 ? 2 : 3;
    });
  case Variant::tiles:
    return each_group([&](schedule::GroupFields& f) {
      for (int a : {0, 1}) f.tile[a] = f.tile.count(a) && f.tile[a] == 3 ? 5 : 3;
    });
  case Variant::permuted: return permuted(c, std::move(out));
  case Variant::batched: return batch(c, std::move(out));
  default: return {};
  }
}

std::vector<Fault> disagreement(Variant v, const Reference& first, const Case& other,
                                const run::Derivation& d, const Outputs& got,
                                const std::vector<Outputs>& parts, Judged& count) {
  std::vector<Fault> out;
  if (v != Variant::batched) {
    for (auto& f : judge(other, first, d, got, count)) out.push_back({"variant", word(v) + (": " + f.what)});
    return out;
  }
  for (auto& [name, want] : first.outputs) {
    const eval::Array& all = got.at(name);
    const int64_t n = want.size();
    for (int64_t b = 0; b < batch_of_many; ++b) {
      const eval::Array& one = parts[size_t(b)].at(name);
      for (int64_t k = 0; k < n; ++k) {
        if (b == 0 && want.at(k).state != expr::State::present) continue;
        ++count.values;
        const size_t x = size_t(k), y = size_t(b * n + k);
        const bool same = all.type == expr::Type::real
                              ? all.r[y] == one.r[x] || (std::isnan(all.r[y]) && std::isnan(one.r[x]))
                              : all.i[y] == one.i[x];
        if (same) continue;
        const bool real = all.type == expr::Type::real;
        out.push_back(
            {"variant", std::string(word(v)) + ": " + name + " at " + std::to_string(k) + " of part " +
                            std::to_string(b) + " is " +
                            (real ? shortest(all.r[y]) + ", alone " + shortest(one.r[x])
                                  : std::to_string(all.i[y]) + ", alone " + std::to_string(one.i[x]))});
        break;
      }
    }
  }
  return out;
}

} // namespace tang::fuzz
