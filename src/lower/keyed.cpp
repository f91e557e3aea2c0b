// Sums by key: a private point of the member is equal to an expression of the others, so that each term is added in one
// place instead of being tested at all of them.
#include <algorithm>
#include <set>

#include "tang/expr/absence.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/keyed.hpp"

namespace tang::lower {

using kernel::Apply;
using kernel::constant;
using kernel::variable;
using kernel::Var;

std::optional<Key> solved(const ir::Graph& g, const plan::Member& m, const ir::Comp& n) {
  for (int t = 0; t < int(n.points.size()); ++t) {
    if (m.axis[size_t(t)] >= 0) continue;
    const auto key = plan::key_of(g, n, t);
    if (!key) continue;
    bool core = true;
    for (int a : axes_of(n, key->at)) core &= m.axis[size_t(a)] >= 0;
    for (int a = 0; a < int(n.points.size()); ++a) core &= a == t || m.axis[size_t(a)] >= 0;
    if (core) return key;
  }
  return {};
}

std::optional<Key> key_of_lone(const ir::Graph& g, const plan::Group& group, const plan::Member& m) {
  if (m.flush != plan::Flush::ordered || group.members.size() > 1 || !group.shared.empty()) return {};
  return solved(g, m, *g[m.node].comp());
}
void keyed_tiles(const plan::Group& group, const ir::Comp& n, const target::Target& t, std::vector<int64_t>& tile) {
  const std::vector<int>& axis = group.members[0].axis;
  int64_t total = 1, room = 1024;  // points beside each other that one term is added to
  for (size_t a = n.points.size(); a-- > 0;) {
    const int c = axis[a];
    if (c < 0) continue;
    const int64_t e = group.extent[size_t(c)];
    int64_t& here = tile[size_t(c)];
    here = std::max<int64_t>(1, std::min(e, room));
    auto blocks = [&] { return std::max<int64_t>(1, (e + here - 1) / here); };
    while (total * blocks() < t.workers && here >= 8 * t.lanes) here /= 2;
    room = std::max<int64_t>(1, room / here);
    total *= blocks();
  }
  for (size_t a = n.points.size(); a < axis.size(); ++a) tile[size_t(axis[a])] = n.extent(int(a)).value();
}

// The place that a term is added to is an integer of the loops over terms, the same for all lanes.
void Emitters::add_terms_by_key(const plan::Member& m, const Key& key, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  kernel::Block* inside = &to;
  Place at = f_.place(n, m.axis, {});
  kernel::Bounds tails;
  auto add = [&](int axis, Var v) {
    at.at[size_t(axis)] = at.at[size_t(axis)] + variable(v);
    const int64_t whole = n.extent(axis).value(), e = f_.extent(n, m.axis, axis);
    if (e && whole % e) tails.push_back({constant(whole - 1) - at.at[size_t(axis)], {}});
  };
  auto loop = [&](int a) {
    if (f_.extent(n, m.axis, a) == 1) return;
    const Var v = f_.k.fresh("r");
    inside->push_back({kernel::Loop{v, constant(0), constant(f_.extent(n, m.axis, a)), 1, {}}});
    inside = &std::get<kernel::Loop>(inside->back().node).body;
    add(a, v);
  };
  for (int a : folds_of(n)) loop(a);
  // Points beside each other share one key: those that a gathered key is read at are loops as well.
  const bool gathers = !key.at.args.empty();
  std::set<int> looped{key.axis};
  if (gathers)
    for (int x : axes_of(n, key.at)) looped.insert(x);
  for (int x : looped)
    if (x != key.axis && x < int(n.points.size())) loop(x);
  if (!tails.empty()) { // before what gathers the key is read there
    kernel::If within;
    for (auto& b : tails) within.all.push_back(b.affine);
    inside->push_back({std::move(within)});
    inside = &std::get<kernel::If>(inside->back().node).then;
    tails.clear();
  }
  Apply a;
  for (int x = 0; x < int(n.points.size()); ++x)
    if (!looped.count(x) && f_.extent(n, m.axis, x) != 1) {
      a.axes.push_back({f_.k.fresh("x"), f_.extent(n, m.axis, x)});
      add(x, a.axes.back().var);
    }
  // The key, as an integer of the loops: gathered indices are loaded before.
  Body indices = f_.body(n, at, m.axis);
  Affine where = constant(key.at.c.value());
  for (auto& [axis, k] : key.at.axes) where = where + k * at.at[size_t(axis)];
  for (auto& [arg, k] : key.at.args) {
    const Var v = f_.k.fresh("key");
    inside->push_back({kernel::Let{v, kernel::Let::load, {}, 1, indices.out.refs[size_t(indices.ref(arg))]}});
    where = where + variable(v, k);
  }
  const Affine below = constant(n.extent(key.axis).value() - 1) - where;
  if (gathers) {
    inside->push_back({kernel::If{{where, below}, {}}});
    inside = &std::get<kernel::If>(inside->back().node).then;
  }
  at.at[size_t(key.axis)] = where;
  Body b = f_.body(n, at, m.axis);
  b.assume(key.domain[0]);
  const expr::Present lift = expr::present(f_.g.pool, n.lift[0]);
  const expr::Id term = b.value(lift.value);
  if (lift.when != expr::yes(f_.g.pool)) b.out.when = b.value(lift.when);
  a.bounds = tails;
  if (!gathers) a.bounds.push_back({where, {}}), a.bounds.push_back({below, {}});
  for (auto& f : key.domain[0]) a.bounds.push_back(b.coordinate(f));
  const Ref dst = result({m.node, 0}, n, at);
  b.out.values = {f_.k.pool->make(expr::Op::add, {b.leaf(dst, expr::Type::real), term})};
  a.dst = {dst};
  a.fill = {std::nullopt};
  a.body = std::move(b.out);
  vectorize(f_.k, a);
  emit(*inside, std::move(a));
}

void Emitters::add_by_key(const plan::Member& m, const Key& key, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  const Weight& w = values_.at({m.node, 0});
  std::map<int, Var> along;
  Apply a;
  kernel::Block* inside = &to;
  const bool gathers = !key.at.args.empty();
  for (size_t x = 0; x < w.axes.size(); ++x) {  // what two points of the statement add to must differ
    const int core = m.axis[size_t(w.axes[x])];
    const Var v = along[core] = f_.k.fresh("x");
    if (x + 1 == w.axes.size() && !gathers) {
      a.axes.push_back({v, f_.tile(core)});
      continue;
    }
    inside->push_back({kernel::Loop{v, constant(0), constant(f_.tile(core)), 1, {}}});
    inside = &std::get<kernel::Loop>(inside->back().node).body;
  }
  Place at = place(m, along);
  Body b = f_.body(n, at, m.axis);
  const Coordinate where = b.coordinate(key.at);
  for (int axis : w.axes) {
    const int64_t whole = n.extent(axis).value();
    if (whole % f_.extent(n, m.axis, axis)) a.bounds.push_back({constant(whole - 1) - at.at[size_t(axis)], {}});
  }
  Coordinate below = where;
  below.affine = constant(n.extent(key.axis).value() - 1) - below.affine;
  for (auto& r : below.refs) r.second = -r.second;
  a.bounds.push_back(where);
  a.bounds.push_back(below);
  Ref dst = result({m.node, 0}, n, at);
  const std::vector<int>& axes = n.outs[0].axes;
  const size_t d = size_t(std::find(axes.begin(), axes.end(), key.axis) - axes.begin());
  Coordinate& c = dst.index[dst.index.size() - axes.size() + d];
  c = where;  // the axis is private: whole in its tile and in its array
  Ref value{w.memory, {}, false};
  for (int axis : w.axes) value.index.push_back({at.at[size_t(axis)] - base(m.axis, axis), {}});
  const expr::Id term = b.leaf(value, expr::Type::real), now = b.leaf(dst, expr::Type::real);
  b.out.values = {f_.k.pool->make(expr::Op::add, {now, term})};
  a.dst = {dst};
  a.fill = {std::nullopt};
  a.body = std::move(b.out);
  emit(*inside, std::move(a));
}

}  // namespace tang::lower
