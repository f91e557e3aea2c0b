// Fuse: a map is spliced into its readers, views composed. Outputs stay; what is stored anyway is not
// recomputed.
#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr size_t most_terms = 400,
                 most_reads = 48; // of a spliced body: a chain of stencils would double at every step

// The policy: which maps to splice into which readers. Reads of the reader are those of the new graph.
struct Policy {
  Edit& e;
  std::vector<int> readers;         // of each old node: how many nodes read it, outputs apart
  std::set<NodeId> outputs;         // old nodes
  std::map<NodeId, bool> finishing; // new map -> it finishes a fold that is stored anyway

  explicit Policy(Edit& edit) : e(edit), readers(edit.from.nodes.size(), 0) {
    for (NodeId id = 0; id < e.from.nodes.size(); ++id)
      if (e.live[id]) {
        std::set<NodeId> read;
        for (Port p : ir::sources(e.from, id)) read.insert(p.node);
        for (NodeId s : read) ++readers[s];
      }
    for (auto& o : e.from.outputs) outputs.insert(o.port.node);
  }

  bool finishes_stored_fold(NodeId map) {
    auto [it, fresh] = finishing.try_emplace(map, false);
    if (fresh)
      if (auto f = finished_fold(e.to, map)) it->second = !is_short_contraction(e.to, *f);
    return it->second;
  }

  // A value that the reader's components use at more points than the map has is recomputed there.
  static bool is_recomputed(const Pool& p, const Comp& n, int arg, Dependence& depends) {
    const Axes covered = depends.of_arg(arg);
    for (size_t c = 0; c < n.lift.size(); ++c)
      if (uses_arg(p, n.lift[c], arg) && ((own_axes(n, c) | fold_axes(n)) & ~covered)) return true;
    return false;
  }

  // Would an expensive op run once a term of the reader's fold?
  bool is_expensive_in_fold(const Comp& m, const Comp& n, int arg, Dependence& of_reader) {
    const Axes folds = fold_axes(n);
    if (!folds) return false;
    const auto at = picked_axes(m, n.args[size_t(arg)]);
    Dependence of_map(e.to.pool, m);
    for (Id x : expr::schedule(e.to.pool, {m.lift[0]})) {
      if (!is_expensive(e.to.pool[x].op)) continue;
      const Axes own = of_map.of(x);
      for (auto& [axis, form] : at)
        if ((own & bit(axis)) && (of_reader.of(form) & folds)) return true;
    }
    return false;
  }

  // Reads of m that are as large as m itself.
  int full_reads(const Comp& m, double size) {
    int out = 0;
    for (auto& a : m.args) out += nominal_size(e.to, a.from) >= size;
    return out;
  }

  // Reads a fold and what that fold was computed from: the second pass over the same data (softmax, a norm).
  bool is_second_pass(const Comp& m) {
    for (auto& a : m.args) {
      const Comp* f = e.to[a.from.node].comp();
      if (!f || f->is_map()) continue;
      for (auto& b : m.args)
        if (b.from.node != a.from.node && reaches(e.to, a.from.node, b.from.node)) return true;
    }
    return false;
  }

  // A map larger than what it reads is better recomputed than stored; so is a map, point by point, of what is
  // never stored itself, unless it adds more to that than one array of its size: along a chain of such sums
  // each would read all arrays before it.
  bool is_larger_than_its_reads(const Comp& m, double size) {
    double read = 0;
    int full = 0;
    bool of_unstored = false;
    for (auto& a : m.args) {
      const double words = nominal_size(e.to, a.from);
      if (is_short_contraction(e.to, a.from.node)) {
        of_unstored |= words >= size;
        for (Port p : ir::sources(e.to, a.from.node)) read += nominal_size(e.to, p);
      } else {
        full += words >= size;
        read += words;
      }
    }
    return (of_unstored && full <= 1) || size > read;
  }

  bool wants(NodeId old, const Comp& m, const Comp& n, int arg) {
    const NodeId now = n.args[size_t(arg)].from.node;
    Dependence depends(e.to.pool, n);
    const bool recomputed = is_recomputed(e.to.pool, n, arg, depends);
    const double size = nominal_size(m.points, e.to.symbols);
    if (expr::schedule(e.to.pool, m.lift).size() > most_terms || n.args.size() + m.args.size() > most_reads)
      return false;
    if (is_table(e.to.pool, m) && is_worth_a_table(e.to, size, n)) return false;
    if (readers[old] == 1) {
      if (!recomputed) return true;
      if (finishes_stored_fold(now)) return false;
      if (!is_expensive_in_fold(m, n, arg, depends)) return true;
      return is_second_pass(m) || is_larger_than_its_reads(m, size);
    }
    if (finishes_stored_fold(now)) return false;
    if (is_larger_than_its_reads(m, size)) return true;
    if (recomputed && is_expensive_in_fold(m, n, arg, depends)) return false;
    return full_reads(m, size) <= 1;
  }
};

Result<Rewritten> apply_fuse(const Graph& g, FusionSteps* record) {
  Edit e(g);
  Policy policy(e);
  std::vector<std::string> what;
  const size_t recorded = record ? record->size() : 0;
  std::map<NodeId, NodeId> old_of; // new node -> old node
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node node = e.node(id);
    if (auto* n = std::get_if<Comp>(&node.what); n && axes_fit(*n)) {
      const std::set<int> indices = index_reads(*n);
      bool changed = false;
      for (int a = 0, count = int(n->args.size()); a < count; ++a) {
        const Port from = n->args[size_t(a)].from;
        const Comp* source = e.to[from.node].comp();
        if (!source || !source->is_map() || !source->outs[0].view.empty() || !axes_fit(*source) ||
            indices.count(a))
          continue;
        auto old = old_of.find(from.node);
        if (old == old_of.end() || policy.outputs.count(old->second)) continue;
        const Comp m = *source;
        if (!policy.wants(old->second, m, *n, a)) continue;
        const Comp before = *n;
        auto body = spliced(e.to.pool, m, n->args[size_t(a)], *n, e.to.symbols);
        if (!body) continue;
        const Id leaf = read_leaf(e.to.pool, e.to.pool[m.lift[0]].type, a);
        for (Id& l : n->lift) l = expr::substitute(e.to.pool, l, {{leaf, *body}});
        what.push_back(g.label({old->second, 0}) + " -> " + g.label({id, 0}));
        if (record) record->push_back({what.back(), m, before, *n, a, *body, nullptr});
        changed = true;
      }
      if (changed) tighten(e.to, *n);
    }
    const NodeId now = e.put(id, std::move(node));
    auto [it, fresh] = old_of.emplace(now, id);
    if (!fresh && policy.outputs.count(id)) it->second = id;
  }
  if (what.empty()) return Refusal{"no map is better spliced than stored"};
  if (record) {
    const auto pool = std::make_shared<const Pool>(e.to.pool);
    for (size_t k = recorded; k < record->size(); ++k) (*record)[k].pool = pool;
  }
  return Rewritten{e.finish(), what};
}

Graph fuse_witness() {
  ir::Builder b;
  auto x = b.input("x", {6, 5}), w = b.input("w", {5, 4}), s = b.input("s", {6});
  auto [i, k, n] = ir::axes<"i k n">();
  auto scaled = ir::map({i, k}, masked(k <= i, x(i, k) * s(i) + 1.0), "scaled");
  auto twice = ir::map({k, i}, scaled(i, k) * 2.0, "turned");
  b.output(ir::map({i, n}, sum(k, twice(k, i) * w(k, n))), "y");
  return b.graph();
}
} // namespace

Rule fuse(FusionSteps* record) {
  return {"fuse",
          {"a map is a pure function of its reads: reading it is its body with the views composed, absent "
           "outside its domain",
           "fusion_guarded", Law::exact},
          [record](const Graph& g) { return apply_fuse(g, record); },
          fuse_witness};
}

} // namespace tang::rewrite
