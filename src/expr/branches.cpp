#include "tang/expr/branches.hpp"

#include <array>
#include <cmath>
#include <optional>

#include "tang/expr/term_table.hpp"

namespace tang::expr {

namespace {
struct Settler {
  Pool& p;

  bool is_literal(Id id) const { return p[id].op == Op::literal; }

  bool is(Id id, bool value) const {
    return is_literal(id) && p[id].type == Type::boolean && (p[id].whole != 0) == value;
  }

  Id known(bool value) { return p.literal(truth(value)); }

  bool is_lowest(Id id) const {
    return is_literal(id) && p[id].type == Type::real && std::isinf(p[id].r) && p[id].r < 0;
  }

  bool is_highest(Id id) const {
    return is_literal(id) && p[id].type == Type::real && std::isinf(p[id].r) && p[id].r > 0;
  }

  bool is_last(Id id) const {
    return is_literal(id) && p[id].type == Type::index && p[id].whole == INT64_MAX;
  }

  Id flip(Id a) {
    if (is_literal(a)) return known(!p[a].whole);
    return p[a].op == Op::flip ? p[a].args[0] : p.make(Op::flip, {a});
  }

  // a < b or a = b, where one side ends the order: every number; every index.
  std::optional<Id> covers(Id x, Id y) {
    const Term a = p[x], b = p[y];
    const bool first = a.op == Op::less && b.op == Op::equal;
    if (!first && !(b.op == Op::less && a.op == Op::equal)) return std::nullopt;
    const Term less = first ? a : b, same = first ? b : a;
    const bool sides = (less.args[0] == same.args[0] && less.args[1] == same.args[1]) ||
                       (less.args[0] == same.args[1] && less.args[1] == same.args[0]);
    if (!sides) return std::nullopt;
    if (is_last(less.args[1])) return known(true);
    const bool low = is_lowest(less.args[0]), high = is_highest(less.args[1]);
    if (low || high) return flip(p.make(Op::is_nan, {low ? less.args[1] : less.args[0]}));
    return std::nullopt;
  }

  Id made(Term t, std::array<Id, 3> x) { // by value: the pool grows
    switch (t.op) {
    case Op::is_nan:
      if (is_literal(x[0])) return known(p[x[0]].r != p[x[0]].r);
      break;
    case Op::less:
    case Op::equal:
      if (is_literal(x[0]) && is_literal(x[1])) {
        auto value = [&](Id id) { return Value{p[id].type, State::present, p[id].r, p[id].whole}; };
        return p.literal(compute(t.op, value(x[0]), value(x[1])));
      }
      if (t.op == Op::less && (is_last(x[0]) || is_lowest(x[1]) || is_highest(x[0]))) return known(false);
      break;
    case Op::flip: return flip(x[0]);
    case Op::both:
      if (is(x[0], false) || is(x[1], false)) return known(false);
      if (is(x[0], true) || x[0] == x[1]) return x[1];
      if (is(x[1], true)) return x[0];
      if (flip(x[0]) == x[1]) return known(false);
      break;
    case Op::either:
      if (is(x[0], true) || is(x[1], true)) return known(true);
      if (is(x[0], false) || x[0] == x[1]) return x[1];
      if (is(x[1], false)) return x[0];
      if (flip(x[0]) == x[1]) return known(true);
      if (auto c = covers(x[0], x[1])) return *c;
      break;
    case Op::select:
      if (is_literal(x[0])) return p[x[0]].whole ? x[1] : x[2];
      if (x[1] == x[2]) return x[1];
      if (is(x[1], true)) return made(p[p.make(Op::either, {x[0], x[2]})], {x[0], x[2], 0});
      if (is(x[2], false)) return made(p[p.make(Op::both, {x[0], x[1]})], {x[0], x[1], 0});
      break;
    default: break;
    }
    return t.arity() == 1   ? p.make(t.op, {x[0]})
           : t.arity() == 2 ? p.make(t.op, {x[0], x[1]})
                            : p.make(t.op, {x[0], x[1], x[2]});
  }
};
} // namespace

Id settle_branches(Pool& p, Id id) {
  Settler s{p};
  TermTable to;
  walk(
      p, id, to, [](Id) { return false; },
      [&](Id x) { to.set(x, p[x].arity() ? s.made(p[x], to.of(p[x])) : x); });
  return to[id];
}

} // namespace tang::expr
