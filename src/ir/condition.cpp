#include "tang/ir/condition.hpp"

namespace tang::ir {

namespace {
std::optional<Form> as_form(const Graph& g, Id e) {
  const expr::Term& t = g.pool[e];
  if (t.type != Type::index) return {};
  switch (t.op) {
    case Op::literal: return constant(Extent(t.whole));
    case Op::coord: return axis(int(t.whole));
    case Op::arg: return uniform(int(t.whole));
    case Op::neg: {
      const auto a = as_form(g, t.args[0]);
      return a ? std::optional((-1) * *a) : std::nullopt;
    }
    case Op::add: {
      const auto a = as_form(g, t.args[0]), b = as_form(g, t.args[1]);
      return a && b ? std::optional(*a + *b) : std::nullopt;
    }
    case Op::mul:
      for (size_t k : {0, 1})
        if (const expr::Term& c = g.pool[t.args[k]]; c.op == Op::literal)
          if (const auto a = as_form(g, t.args[1 - k])) return c.whole * *a;
      return {};
    default: return {};
  }
}

bool adds_one_index(const Graph& g, const Comp& n) {
  if (!n.monoid || n.lift.size() != 1 || !n.monoid->commutative) return false;
  const Value& zero = n.monoid->identity[0];
  const expr::Term& sum = g.pool[n.monoid->combine[0]];
  if (zero.type != Type::index || zero.i != 0 || sum.op != Op::add) return false;
  const expr::Term &a = g.pool[sum.args[0]], &b = g.pool[sum.args[1]];
  return a.op == Op::var && b.op == Op::var && a.whole != b.whole;
}

// c in select(c, 1, 0).
std::optional<Id> counted(const Graph& g, Id lift) {
  const expr::Term& t = g.pool[lift];
  if (t.op != Op::select) return {};
  const expr::Term &one = g.pool[t.args[1]], &none = g.pool[t.args[2]];
  if (one.op != Op::literal || none.op != Op::literal || one.whole != 1 || none.whole != 0) return {};
  return t.args[0];
}

// Does bound f >= 0 hold up to some place of fold axis `a`, and nowhere beyond?
bool ends_along(const Graph& g, const Comp& n, const Form& f, int a) {
  bool keys = false;
  if (f.axis(a)) return false;
  for (auto& [u, k] : f.args) {
    std::set<int> axes;
    moving(n, uniform(u), axes);
    if (!axes.count(a)) continue;
    if (keys || k >= 0 || sorted_along(g, n, u) != a) return false;
    keys = true;
  }
  return keys;
}
} // namespace

std::optional<Conj> as_bounds(const Graph& g, Id condition) {
  const expr::Term& t = g.pool[condition];
  if (t.op != Op::both && t.op != Op::equal && t.op != Op::less) return {};
  Conj out;
  if (t.op == Op::both) {
    for (size_t k : {0, 1}) {
      const auto some = as_bounds(g, t.args[k]);
      if (!some) return {};
      for (auto& f : *some) insert(out, f);
    }
    return out;
  }
  const auto a = as_form(g, t.args[0]), b = as_form(g, t.args[1]);
  if (!a || !b) return {};
  if (t.op == Op::less) return Conj{*b - *a + constant(-1)};
  insert(out, *a - *b);
  insert(out, *b - *a);
  return out;
}

void moving(const Comp& c, const Form& f, std::set<int>& out) {
  for (auto& t : f.axes) out.insert(t.first);
  for (auto& t : f.args)
    for (auto& v : c.args[size_t(t.first)].view) moving(c, v, out);
}

std::optional<int> sorted_along(const Graph& g, const Comp& n, int arg) {
  const Arg& key = n.args[size_t(arg)];
  const Input* in = g[key.from.node].input();
  if (!in || !in->sorted || !key.view.back().is_pick()) return {};
  const int a = key.view.back().picked();
  std::set<int> row;
  for (size_t d = 0; d + 1 < key.view.size(); ++d) moving(n, key.view[d], row);
  if (row.count(a)) return {};
  return a;
}

bool counts_sorted_keys(const Graph& g, const Comp& n) {
  if (!adds_one_index(g, n) || n.folds.size() != 1 || n.domain != everywhere()) return false;
  const auto condition = counted(g, n.lift[0]);
  const auto bounds = condition ? as_bounds(g, *condition) : std::nullopt;
  return bounds && bounds->size() == 1 && ends_along(g, n, (*bounds)[0], int(n.points.size()));
}

} // namespace tang::ir
