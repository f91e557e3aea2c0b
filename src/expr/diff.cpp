#include "tang/expr/diff.hpp"

#include <cmath>

#include "tang/base/error.hpp"
#include "tang/expr/absence.hpp"
#include "tang/expr/build.hpp"
#include "tang/expr/term_table.hpp"

namespace tang::expr {

namespace {

struct Differ {
  Pool& p;
  const std::map<Id, Id>& along; // leaf -> its derivative
  TermTable memo = {}, reads_memo = {};

  bool reads_x(Id id) {
    if (along.count(id)) return true;
    if (reads_memo.has(id)) return reads_memo[id];
    bool r = false;
    for (int k = 0; k < p[id].arity(); ++k) r = r || reads_x(p[id].args[size_t(k)]);
    reads_memo.set(id, r);
    return r;
  }

  Id operator()(Id id) {
    if (auto it = along.find(id); it != along.end()) return it->second;
    if (!reads_x(id)) return p.literal(0.0);
    if (memo.has(id)) return memo[id];
    const Id out = rule(id);
    memo.set(id, out);
    return out;
  }

  // Sums and products without the zeros and ones that make derivatives unreadable.
  bool is(Id id, double v) const { return p[id].op == Op::literal && p[id].r == v; }

  E sum(E a, E b) { return is(a.id, 0) ? b : is(b.id, 0) ? a : a + b; }

  // A product as a number and the rest; no rest: the number alone.
  std::pair<double, std::optional<E>> scaled(E a) const {
    const Term& t = p[a.id];
    if (t.op == Op::literal) return {t.r, std::nullopt};
    if (t.op == Op::neg) {
      const auto [c, rest] = scaled({&p, t.args[0]});
      return {-c, rest};
    }
    if (t.op == Op::mul)
      for (size_t k : {size_t(0), size_t(1)})
        if (p[t.args[k]].op == Op::literal && std::isfinite(p[t.args[k]].r)) {
          const auto [c, rest] = scaled({&p, t.args[1 - k]});
          return {c * p[t.args[k]].r, rest};
        }
    return {1, a};
  }

  E times(E a, E b) {
    if (is(a.id, 0) || is(b.id, 0)) return lit(p, 0);
    const auto [c, x] = scaled(a);
    const auto [d, y] = scaled(b);
    const double k = c * d;
    if (!x && !y) return lit(p, k);
    const E rest = x && y ? *x * *y : x ? *x : *y;
    return k == 1 ? rest : k * rest;
  }

  bool negated(Id id, Id of) const {
    const Term& t = p[id];
    if (t.op == Op::neg) return t.args[0] == of;
    if (t.op != Op::mul) return false;
    return (is(t.args[0], -1) && t.args[1] == of) || (is(t.args[1], -1) && t.args[0] == of);
  }

  // At a tie of max or min: a number before a variable, so relu'(0) = 0; x before -x, so |x|'(0) = 1 whatever
  // order the operands are kept in: sigmoid and tanh ask x < 0 beside |x|.
  bool prefers(Id a, Id b) const {
    if ((p[a].op == Op::literal) != (p[b].op == Op::literal)) return p[a].op == Op::literal;
    return negated(b, a);
  }

  Id rule(Id id) {
    const Term t = p[id];
    const E e{&p, id}, a{&p, t.args[0]}, b{&p, t.args[1]};
    auto d = [&](size_t k) { return E{&p, (*this)(t.args[k])}; };
    switch (t.op) {
    case Op::add: return sum(d(0), d(1)).id;
    case Op::mul: {
      E left = times(d(0), b), right = times(a, d(1));
      return sum(left, right).id;
    }
    case Op::neg: return times(lit(p, -1), d(0)).id;
    case Op::recip: return times(-(e * e), d(0)).id;
    case Op::sqrt: return times(0.5 * recip(e), d(0)).id;
    case Op::sin: return times(cos(a), d(0)).id;
    case Op::atan2: {
      E left = times(b, d(0)), right = times(a, d(1));
      return ((left - right) * recip(a * a + b * b)).id;
    }
    case Op::exp2: return times(ln_2 * e, d(0)).id;
    case Op::log2: return times(log2_e * recip(a), d(0)).id;
    case Op::ratio: {
      E r = ratio(lit(p, 1), b), left = times(r, d(0)), right = times(times(e, r), d(1));
      return is(right.id, 0) ? left.id : sum(left, -right).id;
    }
    case Op::max:
    case Op::min: {
      const size_t first = prefers(t.args[1], t.args[0]), second = 1 - first;
      const E x{&p, t.args[first]}, y{&p, t.args[second]};
      E second_wins = t.op == Op::max ? x < y : y < x;
      return select(second_wins, d(second), d(first)).id;
    }
    case Op::select: {
      E then = d(1), other = d(2);
      return then.id == other.id ? then.id : select(a, then, other).id;
    }
    case Op::only: return is(d(1).id, 0) ? d(1).id : only(a, d(1)).id;
    case Op::or_else: { // which operand it is does not depend on which of them reads x
      const Id when = present(p, t.args[0]).when;
      if (when == yes(p)) return d(0).id;
      const bool guarded = p[d(0).id].op == Op::only && p[d(0).id].args[0] == when;
      return or_else(guarded ? d(0) : only(E{&p, when}, d(0)), d(1)).id;
    }
    default: return p.literal(0.0); // comparisons, floor, integers
    }
  }
};

} // namespace

bool reads(const Pool& p, Id id, Id x) {
  for (Id s : schedule(p, {id}))
    if (s == x) return true;
  return false;
}

Id differentiate(Pool& p, Id id, Id x) {
  check(p[x].type == Type::real && !p[x].arity(), "derivative with respect to a real leaf");
  return directional(p, id, {{x, p.literal(1.0)}});
}

Id directional(Pool& p, Id id, const std::map<Id, Id>& along) { return Differ{p, along}(id); }

std::optional<Id> linear_factor(Pool& p, Id id, Id x) {
  const std::map<Id, Id> one{{x, p.literal(1.0)}};
  Differ d{p, one};
  for (Id s : schedule(p, {id})) {
    const Term& t = p[s];
    if (s == x || !t.arity() || !d.reads_x(s)) continue;
    const bool fine = t.op == Op::add || t.op == Op::neg || t.op == Op::only || t.op == Op::or_else ||
                      (t.op == Op::mul && !(d.reads_x(t.args[0]) && d.reads_x(t.args[1]))) ||
                      (t.op == Op::ratio && !d.reads_x(t.args[1])) ||
                      (t.op == Op::select && !d.reads_x(t.args[0]));
    if (!fine) return {};
  }
  return d(id);
}

} // namespace tang::expr
