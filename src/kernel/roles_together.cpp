#include <algorithm>

#include "tang/kernel/expander.hpp"

// Results of one tile that are stored one after the other become one statement: what their terms share is
// computed once, and what they read is loaded once.
namespace tang::kernel::role {

namespace {
using expr::Op;

bool gathers(const Ref& r) {
  return std::any_of(r.index.begin(), r.index.end(), [](auto& c) { return !c.refs.empty(); });
}

std::vector<std::pair<Var, Var>> axes_of(const Flush& from, const Flush& to) {
  std::vector<std::pair<Var, Var>> out{{from.column, to.column}, {from.row.flat, to.row.flat}};
  for (size_t d = 0; d < from.row.digits.size(); ++d)
    out.push_back({from.row.digits[d].var, to.row.digits[d].var});
  return out;
}

bool same_rows(const RowAxes& a, const RowAxes& b) {
  return a.digits.size() == b.digits.size() &&
         std::equal(a.digits.begin(), a.digits.end(), b.digits.begin(),
                    [](auto& x, auto& y) { return x.extent == y.extent; });
}

// The operands of what commutes in one order: equal terms are then one term. Sums and products of two numbers,
// and the greater of them, are the same in both orders.
Id ordered(Pool& p, Id root) {
  std::map<Id, Id> now;
  for (Id id : expr::schedule(p, {root})) {
    const expr::Term t = p[id];
    std::vector<Id> args;
    for (int i = 0; i < t.arity(); ++i) args.push_back(now.at(t.args[size_t(i)]));
    const bool commutes = t.op == Op::add || t.op == Op::mul || t.op == Op::max || t.op == Op::min;
    if (commutes && args[1] < args[0]) std::swap(args[0], args[1]);
    now[id] = args.empty() ? id : p.make(t.op, args);
  }
  return now.at(root);
}
} // namespace

bool Expander::joined(Flush& x, const Flush& next) const {
  const auto bits = [&](const Flush& f) {
    return expr::row(k_.memories[size_t(f.what.dst[0].memory)].format).bits;
  };
  if (x.columns != next.columns || bits(x) != bits(next) || !same_rows(x.row, next.row)) return false;
  if (!x.what.body.guards.empty() || !next.what.body.guards.empty()) return false;
  for (const Body* body : std::initializer_list<const Body*>{&x.what.body, &next.what.body})
    if (std::any_of(body->refs.begin(), body->refs.end(), gathers)) return false;
  for (auto& r : next.what.body.refs)
    for (auto& d : x.what.dst)
      if (r.memory == d.memory) return false; // it reads what was stored
  const auto axes = axes_of(next, x);
  auto here = [&](Ref r) {
    for (auto& c : r.index)
      for (auto& [from, to] : axes)
        if (from >= 0 && from != to) c.affine = replaced(c.affine, from, variable(to));
    return r;
  };
  Pool& p = *k_.pool;
  std::map<Id, Id> leaves;
  Body& body = x.what.body;
  for (Id id : expr::schedule(p, next.what.body.values)) {
    const expr::Term t = p[id];
    if (t.op == Op::coord)
      for (auto& [from, to] : axes)
        if (Var(t.whole) == from) leaves[id] = p.leaf(Op::coord, t.type, to);
    if (t.op != Op::arg) continue;
    const Ref r = here(next.what.body.refs[size_t(t.whole)]);
    size_t at = 0;
    while (at < body.refs.size() && !(body.refs[at].checked == r.checked && same_place(body.refs[at], r))) ++at;
    if (at == body.refs.size()) body.refs.push_back(r);
    leaves[id] = p.leaf(Op::arg, t.type, int64_t(at));
  }
  body.values.push_back(expr::substitute(p, next.what.body.values[0], leaves));
  for (Id& v : body.values) v = ordered(p, v);
  x.what.dst.push_back(here(next.what.dst[0]));
  x.what.fill.resize(x.what.dst.size());
  x.maps.push_back(next.maps[0]);
  return true;
}

} // namespace tang::kernel::role
