#include "tang/expr/diff.hpp"

#include "tang/base/error.hpp"
#include "tang/expr/build.hpp"

namespace tang::expr {

namespace {

struct Differ {
  Pool& p;
  Id x;
  std::unordered_map<Id, Id> memo = {};
  std::unordered_map<Id, bool> reads_memo = {};

  bool reads_x(Id id) {
    if (id == x) return true;
    if (auto it = reads_memo.find(id); it != reads_memo.end()) return it->second;
    bool r = false;
    for (int k = 0; k < p[id].arity(); ++k) r = r || reads_x(p[id].args[size_t(k)]);
    return reads_memo[id] = r;
  }

  Id operator()(Id id) {
    if (id == x) return p.literal(1.0);
    if (!reads_x(id)) return p.literal(0.0);
    if (auto it = memo.find(id); it != memo.end()) return it->second;
    const Id out = rule(id);
    return memo[id] = out;
  }

  // Sums and products without the zeros and ones that make derivatives unreadable.
  bool is(Id id, double v) const { return p[id].op == Op::literal && p[id].r == v; }

  E sum(E a, E b) { return is(a.id, 0) ? b : is(b.id, 0) ? a : a + b; }

  E times(E a, E b) {
    if (is(a.id, 0) || is(b.id, 0)) return lit(p, 0);
    return is(a.id, 1) ? b : is(b.id, 1) ? a : a * b;
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
    case Op::neg: return is(d(0).id, 0) ? p.literal(0.0) : (-d(0)).id;
    case Op::recip: return times(-(e * e), d(0)).id;
    case Op::sqrt: return times(0.5 * recip(e), d(0)).id;
    case Op::sin: return times(cos(a), d(0)).id;
    case Op::atan2: {
      E left = times(b, d(0)), right = times(a, d(1));
      return ((left - right) * recip(a * a + b * b)).id;
    }
    case Op::exp2: return times(ln_2 * e, d(0)).id;
    case Op::log2: return times(recip(ln_2 * a), d(0)).id;
    case Op::ratio: {
      E r = ratio(lit(p, 1), b), left = times(r, d(0)), right = times(times(e, r), d(1));
      return is(right.id, 0) ? left.id : sum(left, -right).id;
    }
    case Op::max:
    case Op::min: {
      E second_wins = t.op == Op::max ? a < b : b < a;
      return select(second_wins, d(1), d(0)).id;
    }
    case Op::select: {
      E then = d(1), other = d(2);
      return then.id == other.id ? then.id : select(a, then, other).id;
    }
    case Op::only: return only(a, d(1)).id;
    case Op::or_else: return or_else(d(0), d(1)).id;
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
  return Differ{p, x}(id);
}

std::optional<Id> linear_factor(Pool& p, Id id, Id x) {
  Differ d{p, x};
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
