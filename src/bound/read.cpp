// From a comprehension to the nest of what it touches.
#include <algorithm>
#include <set>

#include "tang/base/number.hpp"
#include "tang/bound/nest.hpp"
#include "tang/expr/absence.hpp"

namespace tang::bound {

namespace {
using ir::Comp;
using ir::Domain;
using ir::Graph;
using ir::Id;
using ir::Op;

// Where each read is needed: nothing for a read that data can make unnecessary.
class Needs {
public:
  Needs(ir::Pool& pool, const Comp& c) : pool_(pool), c_(c), of_(c.args.size()) {}

  // The domain of live points, or why data decides it.
  Result<Domain> run() {
    Domain live = c_.domain;
    for (Id lift : c_.lift) {
      const expr::Present p = expr::present(pool_, lift);
      for (Id part : expr::conjuncts(pool_, p.when)) {
        auto g = guard_of(part);
        if (!g) return Refusal{"a data predicate decides which points are live"};
        live = ir::intersection(live, *g);
      }
      walk(p.value, ir::everywhere());
    }
    for (auto& piece : live)
      for (auto& f : piece)
        for (auto& t : f.args) read(size_t(t.first), ir::everywhere());
    return live;
  }

  const std::vector<Domain>& of(size_t arg) const { return of_[arg]; }

private:
  std::optional<Domain> guard_of(Id id) const {
    const expr::Term& t = pool_[id];
    if (t.op == Op::holds) return c_.guards[size_t(t.whole)];
    if (t.op == Op::literal) return t.whole ? ir::everywhere() : Domain{};
    if (t.op == Op::both) {
      auto a = guard_of(t.args[0]), b = guard_of(t.args[1]);
      if (a && b) return ir::intersection(*a, *b);
    }
    if (t.op == Op::flip) {
      auto a = guard_of(t.args[0]);
      if (a && a->size() == 1 && a->front().size() == 1) return Domain{{ir::negated(a->front().front())}};
    }
    return std::nullopt;
  }

  void read(size_t arg, const Domain& where) {
    auto& all = of_[arg];
    if (std::find(all.begin(), all.end(), where) != all.end()) return;
    all.push_back(where);
    for (auto& f : c_.args[arg].view)
      for (auto& t : f.args) read(size_t(t.first), where);
  }

  void walk(Id id, const Domain& where) {
    if (!seen_.insert({id, where}).second) return;
    const expr::Term t = pool_[id];
    if (t.op == Op::arg) return read(size_t(t.whole), where);
    if (t.op == Op::select || t.op == Op::only) {
      walk(t.args[0], where);
      if (auto g = guard_of(t.args[0])) {
        walk(t.args[1], ir::intersection(where, *g));
        if (t.op == Op::select && g->size() == 1 && g->front().size() == 1)
          walk(t.args[2], ir::intersection(where, {{ir::negated(g->front().front())}}));
      }
      return;
    }
    const int needed = t.op == Op::or_else ? 1 : t.arity();
    for (int k = 0; k < needed; ++k) walk(t.args[size_t(k)], where);
  }

  ir::Pool& pool_;
  const Comp& c_;
  std::vector<std::vector<Domain>> of_;
  std::set<std::pair<Id, Domain>> seen_;
};

int64_t weight_of(const Graph& g, ir::Port p, Unit unit) {
  if (unit == Unit::words) return 1;
  auto* in = g[p.node].input();
  ir::Format f = in ? in->format : expr::default_format(g.type(p));
  for (auto& o : g.outputs)
    if (o.port == p) f = o.format;
  return std::max(1, expr::row(f).bits / 8);
}

std::string axis_name(int a) {
  const std::string names = "ijklmnpqrstuvwxyz";
  return size_t(a) < names.size() ? std::string(1, names[size_t(a)]) : "a" + std::to_string(a);
}

void moves(const Comp& c, const ir::Form& f, std::set<int>& out) {
  for (auto& t : f.axes) out.insert(t.first);
  for (auto& t : f.args)
    for (auto& v : c.args[size_t(t.first)].view) moves(c, v, out);
}
} // namespace

Result<Nest> nest_of(const Graph& g, ir::NodeId id, Unit unit, const Keys& keys) {
  const Comp* c = g[id].comp();
  if (!c) return Refusal{"not a comprehension"};
  Nest n;
  n.name = g.label({id, 0});
  for (int a = 0; a < c->axis_count(); ++a) {
    if (!c->extent(a).is_constant()) return Refusal{"an extent is not bound"};
    n.axes.push_back(axis_name(a));
    n.extents.push_back(c->extent(a).value());
  }
  ir::Pool pool = g.pool;
  Needs needs(pool, *c);
  auto live = needs.run();
  if (!live) return Refusal{live.why()};
  n.domain = *live;
  std::map<ir::Port, int> tensors;
  auto row = [&](const ir::Form& f) {
    Row r(size_t(n.loops()), 0);
    for (auto& [a, k] : f.axes) r[size_t(a)] = k;
    return r;
  };
  for (size_t k = 0; k < c->args.size(); ++k)
    for (const Domain& where : needs.of(k)) {
      // A read that is needed everywhere says all that its guarded uses say.
      if (where != ir::everywhere() &&
          std::find(needs.of(k).begin(), needs.of(k).end(), ir::everywhere()) != needs.of(k).end())
        continue;
      const ir::Arg& arg = c->args[k];
      Array a;
      a.name = g.label(arg.from);
      a.tensor = tensors.emplace(arg.from, int(tensors.size())).first->second;
      a.weight = weight_of(g, arg.from, unit);
      a.guard = where;
      std::set<int> by;
      for (auto& f : arg.view) {
        if (f.is_affine()) {
          a.rows.push_back(row(f));
          continue;
        }
        a.gathered = true;
        moves(*c, f, by);
      }
      a.keyed_by.assign(by.begin(), by.end());
      if (auto it = keys.find(a.name); a.gathered && it != keys.end()) a.keys = it->second;
      n.arrays.push_back(std::move(a));
    }
  // Components over the same points are one array: the whole state of a point.
  std::map<std::vector<Row>, size_t> outs;
  for (size_t k = 0; k < c->outs.size(); ++k) {
    const ir::Out& o = c->outs[k];
    std::vector<Row> rows;
    if (o.view.empty())
      for (int a : o.axes) rows.push_back(pick(n, a));
    else
      for (auto& f : o.view) rows.push_back(row(f));
    const int64_t w = weight_of(g, {id, uint32_t(k)}, unit);
    auto [it, fresh] = outs.emplace(rows, n.arrays.size());
    if (!fresh) {
      n.arrays[it->second].weight += w;
      continue;
    }
    Array a;
    a.name = g.label({id, uint32_t(k)});
    a.tensor = int(tensors.size()) + int(k);
    a.weight = w;
    a.rows = rows;
    a.output = true;
    n.arrays.push_back(std::move(a));
  }
  return n;
}

namespace {
// A fold whose result is larger than everything it reads, read once and at picked coordinates.
bool inlines(const Graph& g, const Comp& reader, const ir::Arg& arg) {
  auto* c = g[arg.from.node].comp();
  if (!c || !c->monoid || c->folds.empty() || c->lift.size() != 1 || c->points.empty() ||
      !c->outs[0].view.empty())
    return false;
  std::set<int> picked;
  for (auto& f : arg.view)
    if (!f.is_pick() || !picked.insert(f.picked()).second) return false;
  for (auto& a : reader.args) // its value is needed before a term is: not part of the body
    for (auto& f : a.view)
      for (auto& t : f.args)
        if (reader.args[size_t(t.first)].from == arg.from) return false;
  int64_t result = 1, reads = 0;
  for (auto& e : c->points) {
    if (!e.is_constant()) return false;
    result = mul_saturated(result, e.value());
  }
  for (auto p : ir::sources(g, arg.from.node)) {
    int64_t v = 1;
    for (auto& e : g.shape(p)) v = mul_saturated(v, e.is_constant() ? e.value() : INT64_MAX);
    reads = add_saturated(reads, v);
  }
  return result > reads;
}

// Drops the loops that are not kept: a row of their own makes an element that many times as large. Refused
// where a coordinate mixes kept and dropped loops.
Result<Array> whole(const Array& a, const std::vector<int>& kept_place, const std::vector<int64_t>& extents,
                    size_t kept) {
  Array out = a;
  out.rows.clear();
  std::set<int> dropped;
  for (auto& r : a.rows) {
    Row mine(kept, 0);
    bool core = false, private_ = false;
    int axis = -1, terms = 0;
    for (size_t k = 0; k < r.size(); ++k) {
      if (!r[k]) continue;
      if (kept_place[k] >= 0)
        mine[size_t(kept_place[k])] = r[k], core = true;
      else
        private_ = true, axis = int(k), ++terms;
    }
    if (core && private_) return Refusal{a.name + " mixes loops of the chain with whole rows"};
    if (core) out.rows.push_back(mine);
    if (!private_) continue;
    if (terms > 1) return Refusal{a.name + " has a coordinate of several whole loops"};
    if (dropped.insert(axis).second) out.weight = mul_saturated(out.weight, extents[size_t(axis)]);
  }
  return out;
}

bool within(const Domain& d, const std::vector<int>& place) {
  for (auto& piece : d)
    for (auto& f : piece)
      for (auto& t : f.axes)
        if (place[size_t(t.first)] < 0) return false;
  return true;
}
} // namespace

Result<Nest> chained_nest_of(const Graph& g, ir::NodeId id, Unit unit, const Keys& keys) {
  const Comp* c = g[id].comp();
  if (!c) return Refusal{"not a comprehension"};
  auto outer = nest_of(g, id, unit, keys);
  if (!outer) return outer;
  std::vector<const ir::Arg*> chain;
  for (auto& a : c->args)
    if (inlines(g, *c, a)) chain.push_back(&a);
  if (chain.empty()) return Refusal{"no operand is a fold that is larger than what it reads"};
  std::vector<int> core;
  for (auto& f : chain[0]->view) core.push_back(f.picked());
  std::sort(core.begin(), core.end());
  for (auto* a : chain) {
    std::vector<int> own;
    for (auto& f : a->view) own.push_back(f.picked());
    std::sort(own.begin(), own.end());
    if (own != core) return Refusal{"chained folds are read over different loops"};
  }
  Nest n;
  n.name = outer->name;
  std::vector<int> place(size_t(outer->loops()), -1);
  for (int a : core) {
    place[size_t(a)] = n.loops();
    n.axes.push_back(outer->axes[size_t(a)]);
    n.extents.push_back(outer->extents[size_t(a)]);
  }
  if (!within(outer->domain, place)) return Refusal{"the live points depend on loops outside the chain"};
  auto moved = [](const Domain& d, const std::vector<int>& to) {
    return ir::moved(
        d, [&](const ir::Form& f) { return ir::compose(f, [&](int a) { return ir::axis(to[size_t(a)]); }); });
  };
  n.domain = moved(outer->domain, place);
  std::set<std::string> inlined;
  for (auto* a : chain) inlined.insert(g.label(a->from));
  std::map<std::string, int> tensors; // inputs have different names, and so have labels of values
  auto add = [&](const Nest& from, const std::vector<int>& to) -> std::string {
    for (auto& a : from.arrays) {
      if (!a.output && inlined.count(a.name)) continue;
      if (a.output && inlined.count(a.name)) continue;
      auto w = whole(a, to, from.extents, n.extents.size());
      if (!w) return w.why();
      if (!within(a.guard, to)) return "the guard of " + a.name + " depends on loops outside the chain";
      w->guard = moved(a.guard, to);
      w->tensor = tensors.emplace((a.output ? "out " : "") + a.name, int(tensors.size())).first->second;
      if (a.output) { // components that differ in whole loops only are one state
        auto same = std::find_if(n.arrays.begin(), n.arrays.end(),
                                 [&](const Array& b) { return b.output && b.rows == w->rows; });
        if (same != n.arrays.end()) {
          same->weight += w->weight;
          continue;
        }
      }
      n.arrays.push_back(*w);
    }
    return "";
  };
  std::string why = add(*outer, place);
  for (auto* a : chain) {
    auto inner = nest_of(g, a->from.node, unit, keys);
    if (!inner) return inner;
    const Comp& ic = *g[a->from.node].comp();
    std::vector<int> to(size_t(inner->loops()), -1);
    for (size_t d = 0; d < a->view.size(); ++d)
      to[size_t(ic.outs[0].axes[d])] = place[size_t(a->view[d].picked())];
    // Terms of the inner fold that are absent at a point only make it cheaper: the domain must be over points
    // alone.
    if (!within(inner->domain, to)) return Refusal{"the inner fold's live points depend on its own loops"};
    if (why.empty()) why = add(*inner, to);
  }
  if (!why.empty()) return Refusal{why};
  return n;
}

} // namespace tang::bound
