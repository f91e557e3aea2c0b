#include "tang/lower/sites.hpp"

#include <algorithm>

#include "tang/base/match.hpp"

namespace tang::lower {

std::optional<Site> site(Stmt& s, size_t at) {
  if (auto* a = std::get_if<Apply>(&s.node))
    return Site{at, &a->body, a->axes, {&a->bounds}, &a->dst, a->partial.empty() && !a->body.when};
  if (auto* f = std::get_if<Fold>(&s.node)) {
    Site out{at, &f->body, f->kept, {&f->bounds, &f->limits}, &f->dst, f->partial.empty() && !f->body.when};
    out.axes.insert(out.axes.end(), f->folded.begin(), f->folded.end());
    return out;
  }
  return std::nullopt;
}

void written_by(const kernel::Block& b, std::set<int>& out) {
  for (auto& s : b)
    std::visit(Match{[&](const Apply& x) {
                       for (auto& d : x.dst) out.insert(d.memory);
                     },
                     [&](const Fold& x) {
                       for (auto& d : x.dst) out.insert(d.memory);
                     },
                     [&](const kernel::Contract& x) { out.insert(x.dst.memory); },
                     [&](const kernel::Loop& x) { written_by(x.body, out); },
                     [&](const kernel::If& x) { written_by(x.then, out); },
                     [&](const kernel::Pipeline& x) { written_by(x.operands, out), written_by(x.body, out); },
                     [](const auto&) {}},
               s.node);
}

void rename(Affine& a, const std::map<Var, Var>& to) {
  Affine out = kernel::constant(a.c);
  for (auto& [v, k] : a.terms) {
    auto it = to.find(v);
    out = out + kernel::variable(it == to.end() ? v : it->second, k);
  }
  a = out;
}

void rename(kernel::Body& b, const std::map<Var, Var>& to) {
  for (auto& r : b.refs)
    for (auto& c : r.index) rename(c.affine, to);
  for (auto& g : b.guards)
    for (auto& x : g)
      for (auto& c : x) rename(c.affine, to);
}

Id copied(kernel::Pool& p, Id id, const std::function<std::optional<Id>(const Term&)>& leaf) {
  return expr::transplant(kernel::Pool(p), id, p, [&](const Term& t) {
    if (auto x = leaf(t)) return *x;
    return t.op == Op::literal ? p.literal(expr::Value{t.type, expr::State::present, t.r, t.whole})
                               : p.leaf(t.op, t.type, t.whole);
  });
}

void compact(kernel::Pool& p, const Site& s) {
  kernel::Body& b = *s.body;
  std::vector<Id> roots = b.values;
  if (b.when) roots.push_back(*b.when);
  std::set<int> refs, guards;
  std::function<void(const Coordinate&)> need = [&](const Coordinate& c) {
    for (auto& x : c.refs)
      if (refs.insert(x.first).second)
        for (auto& i : b.refs[size_t(x.first)].index) need(i);
  };
  for (Id id : expr::schedule(p, roots)) {
    const Term& t = p[id];
    if (t.op == Op::arg) {
      refs.insert(int(t.whole));
      for (auto& i : b.refs[size_t(t.whole)].index) need(i);
    }
    if (t.op == Op::holds && guards.insert(int(t.whole)).second)
      for (auto& x : b.guards[size_t(t.whole)])
        for (auto& c : x) need(c);
  }
  std::vector<Bounds*> conditions = s.conditions;
  for (auto* x : conditions)
    for (auto& c : *x) need(c);
  for (auto& d : *s.dst)
    for (auto& c : d.index) need(c);
  std::map<int, int> ref_to, guard_to;
  auto move = [&](Coordinate& c) {
    for (auto& x : c.refs) x.first = ref_to.at(x.first);
  };
  kernel::Body out;
  for (int r : refs) {
    ref_to[r] = int(out.refs.size());
    out.refs.push_back(b.refs[size_t(r)]);
    for (auto& c : out.refs.back().index) move(c);
  }
  for (int g : guards) {
    guard_to[g] = int(out.guards.size());
    out.guards.push_back(b.guards[size_t(g)]);
    for (auto& x : out.guards.back())
      for (auto& c : x) move(c);
  }
  for (auto* x : conditions)
    for (auto& c : *x) move(c);
  for (auto& d : *s.dst)
    for (auto& c : d.index) move(c);
  auto leaf = [&](const Term& t) -> std::optional<Id> {
    if (t.op == Op::arg) return p.leaf(Op::arg, t.type, ref_to.at(int(t.whole)));
    if (t.op == Op::holds) return p.leaf(Op::holds, t.type, guard_to.at(int(t.whole)));
    return std::nullopt;
  };
  for (Id v : b.values) out.values.push_back(copied(p, v, leaf));
  if (b.when) out.when = copied(p, *b.when, leaf);
  b = std::move(out);
}

} // namespace tang::lower
