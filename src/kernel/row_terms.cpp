#include "tang/kernel/row_terms.hpp"

#include <cmath>
#include <map>

namespace tang::kernel {

namespace {
using expr::Op;
using expr::Term;

bool is_number(const Pool& p, Id id, double* value) {
  const Term& t = p[id];
  if (t.op != Op::literal || t.type != Type::real) return false;
  *value = t.r;
  return true;
}

// A number, times a term that is the same along the row (or nothing), times an atom that varies (or nothing).
struct Addend {
  double number = 1;
  std::optional<Id> row, atom;
};

using Linear = std::vector<Addend>;

void integers(Pool& p, Id id, const Varies& varies, double k, std::optional<Id> row, int64_t factor,
              Linear& out);

void collect(Pool& p, Id id, const Varies& varies, double k, std::optional<Id> row, Linear& out) {
  const Term t = p[id];
  double v = 0;
  if (t.op == Op::add && t.type == Type::real && varies(id)) {
    collect(p, t.args[0], varies, k, row, out), collect(p, t.args[1], varies, k, row, out);
  } else if (t.op == Op::neg && t.type == Type::real) {
    collect(p, t.args[0], varies, -k, row, out);
  } else if (t.op == Op::mul && t.type == Type::real &&
             (is_number(p, t.args[0], &v) || is_number(p, t.args[1], &v))) {
    collect(p, p[t.args[0]].op == Op::literal ? t.args[1] : t.args[0], varies, v * k, row, out);
  } else if (t.op == Op::mul && t.type == Type::real && varies(id) &&
             varies(t.args[0]) != varies(t.args[1])) {
    const int fixed = varies(t.args[0]) ? 1 : 0;
    const Id own = t.args[size_t(fixed)];
    collect(p, t.args[size_t(1 - fixed)], varies, k, row ? p.make(Op::mul, {*row, own}) : own, out);
  } else if (t.op == Op::to_real && varies(id)) {
    integers(p, t.args[0], varies, k, row, 1, out);
  } else if (varies(id)) {
    out.push_back({k, row, id});
  } else {
    out.push_back({k, row ? p.make(Op::mul, {*row, id}) : id, {}});
  }
}

// to_real of a sum of integers, term by term.
void integers(Pool& p, Id id, const Varies& varies, double k, std::optional<Id> row, int64_t factor,
              Linear& out) {
  const Term t = p[id];
  auto number = [&](int side) {
    return p[t.args[size_t(side)]].op == Op::literal ? std::optional(p[t.args[size_t(side)]].whole)
                                                     : std::nullopt;
  };
  if (t.op == Op::add && varies(id)) {
    integers(p, t.args[0], varies, k, row, factor, out), integers(p, t.args[1], varies, k, row, factor, out);
  } else if (t.op == Op::neg && varies(id)) {
    integers(p, t.args[0], varies, k, row, -factor, out);
  } else if (t.op == Op::mul && varies(id) && (number(0) || number(1))) {
    integers(p, t.args[number(0) ? 1 : 0], varies, k, row, factor * (number(0) ? *number(0) : *number(1)),
             out);
  } else {
    const Id x = p.make(Op::to_real, {id});
    const double all = k * double(factor);
    if (varies(id))
      out.push_back({all, row, x});
    else
      out.push_back({all, row ? p.make(Op::mul, {*row, x}) : x, {}});
  }
}

Id times(Pool& p, double k, Id x) { return k == 1 ? x : p.make(Op::mul, {x, p.literal(k)}); }

// One factor an atom, then what does not vary: k a + (.. + rest), which a printer fuses.
Linear gathered(Pool& p, const Linear& all) {
  Linear out;
  std::optional<Id> rest;
  for (auto& a : all) {
    if (!a.atom) {
      const Id x = times(p, a.number, *a.row);
      rest = rest ? p.make(Op::add, {x, *rest}) : x;
      continue;
    }
    bool known = false;
    for (auto& o : out)
      if (o.atom == a.atom && !o.row && !a.row) o.number += a.number, known = true;
    if (!known) out.push_back(a);
  }
  if (rest) out.push_back({1, *rest, {}});
  return out;
}

Id sum(Pool& p, const Linear& l) {
  std::optional<Id> out;
  for (size_t i = l.size(); i-- > 0;) {
    Id x = 0;
    if (!l[i].atom)
      x = times(p, l[i].number, *l[i].row);
    else if (l[i].row)
      x = p.make(Op::mul, {*l[i].atom, times(p, l[i].number, *l[i].row)});
    else
      x = times(p, l[i].number, *l[i].atom);
    out = out ? p.make(Op::add, {x, *out}) : x;
  }
  return out ? *out : p.literal(0.0);
}

// The x of `x == -inf`, in either order.
std::optional<Id> is_minus_infinity(const Pool& p, Id id) {
  const Term& t = p[id];
  double v = 0;
  if (t.op != Op::equal) return {};
  for (int side : {0, 1})
    if (is_number(p, t.args[size_t(side)], &v) && v == -INFINITY) return t.args[size_t(1 - side)];
  return {};
}

bool is_minus(const Pool& p, Id id, Id x) {
  double v = 0, w = 0;
  if (is_number(p, id, &v) && is_number(p, x, &w)) return v == -w;
  auto parts = [&](Id y) {
    const bool minus = p[y].op == Op::neg;
    const Scaled s = scaled(p, minus ? p[y].args[0] : y);
    return Scaled{minus ? -s.factor : s.factor, s.rest};
  };
  const Scaled a = parts(id), b = parts(x);
  return a.rest == b.rest && a.factor == -b.factor;
}

// x of max(x, -x), in either order.
bool is_magnitude(const Pool& p, Id id, Id x) {
  const Term& t = p[id];
  return t.op == Op::max && (t.args[0] == x || t.args[1] == x) && is_minus(p, t.args[0], t.args[1]);
}

// The other side of a sum with the number 1.
std::optional<Id> one_plus(const Pool& p, Id id) {
  const Term& t = p[id];
  double k = 0;
  for (int side : {0, 1})
    if (t.op == Op::add && is_number(p, t.args[size_t(side)], &k) && k == 1) return t.args[size_t(1 - side)];
  return {};
}

// 2^(c |x|) with c < 0: c, where the term is that for this x.
std::optional<double> falling_power(const Pool& p, Id id, Id x) {
  if (p[id].op != Op::exp2) return {};
  const Term by = p[p[id].args[0]];
  double c = 0;
  for (int f : {0, 1})
    if (by.op == Op::mul && is_number(p, by.args[size_t(f)], &c) && c < 0 &&
        is_magnitude(p, by.args[size_t(1 - f)], x))
      return c;
  return {};
}

// The x of a value that is `then` where x < 0 and its negative elsewhere.
std::optional<Id> changes_sign(const Pool& p, const Term& t) {
  double zero = 1;
  if (t.op != Op::select || t.type != Type::real || !is_minus(p, t.args[1], t.args[2])) return {};
  const Term less = p[t.args[0]];
  const bool found = less.op == Op::less && (is_minus(p, less.args[1], less.args[0]) ||
                                             (is_number(p, less.args[1], &zero) && zero == 0));
  return found ? std::optional(less.args[0]) : std::nullopt;
}

// 1 / (1 + 2^(-c x)): finite for all x, infinite powers give 0.
Id share(Pool& p, Id x, double c) {
  const Id power = p.make(Op::exp2, {p.make(Op::mul, {x, p.literal(-c)})});
  return p.make(Op::recip, {p.make(Op::add, {power, p.literal(1.0)})});
}

// The power e of (1 - e) / (1 + e).
std::optional<Id> of_quotient(const Pool& p, const std::vector<Id>& factors) {
  for (size_t side : {size_t(0), size_t(1)}) {
    if (factors.size() != 2 || p[factors[side]].op != Op::recip) continue;
    const auto e = one_plus(p, p[factors[side]].args[0]), minus = one_plus(p, factors[1 - side]);
    if (e && minus && is_minus(p, *minus, *e)) return e;
  }
  return {};
}

// A product as a number and its factors.
double factors(const Pool& p, Id id, std::vector<Id>& out) {
  const Term& t = p[id];
  double k = 1;
  if (is_number(p, id, &k)) return k;
  if (t.op == Op::neg) return -factors(p, t.args[0], out);
  if (t.op == Op::mul) {
    const double left = factors(p, t.args[0], out);
    return left * factors(p, t.args[1], out);
  }
  out.push_back(id);
  return 1;
}

// (1 - e) / (1 + e) with e = 2^(c |x|), c < 0, and its negative where x < 0: that is 1 - 2 / (1 + 2^(-c x))
// on both sides of 0, right to one rounding of 1. Infinite powers give 1, powers of 0 give -1.
std::optional<Id> odd_quotient(Pool& p, Id id) {
  const auto x = changes_sign(p, p[id]);
  std::vector<Id> all;
  if (!x || factors(p, p[id].args[2], all) != 1) return {};
  const auto e = of_quotient(p, all);
  const auto c = e ? falling_power(p, *e, *x) : std::nullopt;
  if (!c) return {};
  return p.make(Op::add, {p.make(Op::mul, {share(p, *x, *c), p.literal(-2.0)}), p.literal(1.0)});
}

// What is left of that quotient's derivative: k e / (1 + e)^2, the same on both sides of 0. With the share s =
// 1 / (1 + 2^(-c x)) it is k (s - s s). A factor 1 + (1 - e) / (1 + e) is 2 / (1 + e).
std::optional<Id> even_product(Pool& p, Id id) {
  const auto x = changes_sign(p, p[id]);
  std::vector<Id> all;
  if (!x) return {};
  double k = factors(p, p[id].args[2], all);
  std::optional<Id> e;
  int powers = 0, shares = 0, signs = 0;
  auto same = [&](Id power) { return (!e || *e == power) && falling_power(p, *(e = power), *x).has_value(); };
  for (Id f : all) {
    const Term t = p[f];
    double a = 0;
    if (const auto y = changes_sign(p, t); y && is_number(p, t.args[2], &a)) {
      k *= a, signs += *y == *x;
    } else if (t.op == Op::exp2 && same(f)) {
      ++powers;
    } else if (const auto own = t.op == Op::recip ? one_plus(p, t.args[0]) : std::nullopt; own && same(*own)) {
      ++shares;
    } else {
      std::vector<Id> quotient;
      const int number = t.op == Op::add && is_number(p, t.args[0], &a) ? 1 : 0;
      if (t.op != Op::add || (!number && !is_number(p, t.args[1], &a))) return {};
      if (factors(p, t.args[size_t(number)], quotient) != a) return {};
      if (const auto of = of_quotient(p, quotient); !of || !same(*of)) return {};
      k *= 2 * a, ++shares;
    }
  }
  if (powers != 1 || shares != 2 || signs != 1) return {};
  const Id s = share(p, *x, *falling_power(p, *e, *x));
  return p.make(Op::mul, {p.make(Op::add, {p.make(Op::mul, {p.make(Op::neg, {s}), s}), s}), p.literal(k)});
}

Id without_odd_quotients(Pool& p, Id value) {
  std::map<Id, Id> to;
  for (Id id : expr::schedule(p, {value}))
    if (const auto q = odd_quotient(p, id))
      to[id] = *q;
    else if (const auto even = even_product(p, id))
      to[id] = *even;
  return to.empty() ? value : expr::substitute(p, value, to);
}
} // namespace

Scaled scaled(const Pool& p, Id value) {
  const Term& t = p[value];
  double k = 0;
  if (t.op == Op::mul)
    for (int side : {0, 1})
      if (is_number(p, t.args[size_t(side)], &k)) {
        const Scaled inner = scaled(p, t.args[size_t(1 - side)]);
        return {k * inner.factor, inner.rest};
      }
  return {1, value};
}

Id by_rows(Pool& p, Id value, const Varies& varies) {
  value = without_odd_quotients(p, value);
  std::map<Id, Id> now;
  auto linear = [&](Id id) {
    Linear l;
    collect(p, id, varies, 1, {}, l);
    return gathered(p, l);
  };
  auto rebuilt = [&](Linear l) {
    for (auto& a : l)
      if (a.atom)
        if (auto it = now.find(*a.atom); it != now.end()) a.atom = it->second;
    return sum(p, l);
  };
  for (Id id : expr::schedule(p, {value})) {
    const Term t = p[id];
    auto arg = [&](int i) { return now.at(t.args[size_t(i)]); };
    if (!varies(id) || !t.arity()) {
      now[id] = id;
      continue;
    }
    double zero = 1;
    if (t.op == Op::select && is_number(p, t.args[1], &zero) && zero == 0 && p[t.args[2]].op == Op::exp2)
      if (const auto x = is_minus_infinity(p, t.args[0])) {
        const Linear of_x = linear(*x), l = linear(p[t.args[2]].args[0]);
        bool follows = of_x.size() == 1 && of_x[0].atom && !of_x[0].row && of_x[0].number > 0;
        follows = follows && !l.empty() && l[0].atom == of_x[0].atom && !l[0].row && l[0].number > 0 &&
                  (l.size() == 1 || (l.size() == 2 && !l[1].atom));
        if (follows) {
          Linear finite = l;
          if (l.size() == 2)
            finite[1].row = p.make(
                Op::select, {p.make(Op::equal, {*l[1].row, p.literal(INFINITY)}), p.literal(0.0), *l[1].row});
          now[id] = p.make(Op::exp2, {rebuilt(finite)});
          continue;
        }
      }
    if (t.type == Type::real &&
        (t.op == Op::add || t.op == Op::mul || t.op == Op::neg || t.op == Op::to_real)) {
      const Linear l = linear(id);
      if (l.size() != 1 || l[0].atom != id) {
        now[id] = rebuilt(l);
        continue;
      }
    }
    if (t.op == Op::ratio && !varies(t.args[1])) {
      now[id] = p.make(Op::mul, {arg(0), p.make(Op::ratio, {p.literal(1.0), t.args[1]})});
    } else {
      std::vector<Id> args;
      for (int i = 0; i < t.arity(); ++i) args.push_back(arg(i));
      now[id] = p.make(t.op, args);
    }
  }
  return now.at(value);
}

} // namespace tang::kernel
