// Sums by key: a private point of the member is equal to an expression of the others, so that each term is added in one
// place instead of being tested at all of them.
#include <algorithm>

#include "tang/lower/emitters.hpp"
#include "tang/lower/keyed.hpp"

namespace tang::lower {

using kernel::Apply;
using kernel::constant;
using kernel::variable;
using kernel::Var;

std::optional<Key> solved(const ir::Graph& g, const plan::Member& m, const ir::Comp& n) {
  if (!n.monoid || n.lift.size() != 1 || n.domain.size() != 1) return {};
  const ir::Conj& all = n.domain[0];
  for (int t = 0; t < int(n.points.size()); ++t) {
    if (m.axis[size_t(t)] >= 0 || axes_of(g, n, n.lift[0]).count(t)) continue;
    const ir::Form* equality = nullptr;
    bool alone = true;
    for (auto& f : all) {
      if (!axes_of(n, f).count(t)) continue;
      const bool both = std::find(all.begin(), all.end(), -1 * f) != all.end();
      const auto k = std::find_if(f.axes.begin(), f.axes.end(), [&](auto& a) { return a.first == t; });
      if (!both || k == f.axes.end() || std::abs(k->second) != 1 || (equality && !(-1 * f == *equality))) alone = false;
      else if (k->second == -1) equality = &f;
    }
    if (!alone || !equality) continue;
    Key key{t, *equality + ir::axis(t), {}};
    bool core = true;
    for (int a : axes_of(n, key.at)) core &= m.axis[size_t(a)] >= 0;
    for (int a = 0; a < int(n.points.size()); ++a) core &= a == t || m.axis[size_t(a)] >= 0;
    if (!core) continue;
    ir::Conj rest;
    for (auto& f : all)
      if (!axes_of(n, f).count(t)) ir::insert(rest, f);
    key.domain = {rest};
    return key;
  }
  return {};
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
