// Terms, reads, bounds: typed, in range by construction, with the size of every value known.

#include "tang/fuzz/generator.hpp"

namespace tang::fuzz {

using namespace ir;

namespace {
Range whole(double lo, double hi) { return {lo, hi, false, true}; }
} // namespace

Term Generator::limited(const Term& t, double most) {
  if (t.range.size() <= most) return t;
  const E above =
      t.range.lo < -most ? expr::max(t.e, expr::lit_like(t.e, -most)) : t.e; // bits are not negative
  const E e = expr::min(above, expr::lit_like(t.e, most));
  return {e,
          {std::max(-most, std::min(t.range.lo, most)), std::min(most, std::max(t.range.hi, -most)), false,
           t.range.sharp}};
}

Term Generator::finite(const Term& t) {
  if (!t.range.infinite) return t;
  const Type type = t.e.type();
  if (type == Type::index) { // of an arg-max: nowhere
    const E nowhere{t.e.pool, t.e.pool->literal(expr::whole(INT64_MAX))};
    return {expr::select(t.e == nowhere, expr::lit_like(t.e, -1), t.e),
            {std::min(t.range.lo, -1.0), t.range.hi, false, t.range.sharp}};
  }
  Term out = t;
  out.range.infinite = false;
  out.range.lo = std::min(out.range.lo, -8.0), out.range.hi = std::max(out.range.hi, 8.0);
  const double m = std::ceil(out.range.size());
  out.e = expr::min(expr::max(t.e, expr::lit_like(t.e, -m)), expr::lit_like(t.e, m));
  out.range = {-m, m, false, t.range.sharp};
  return out;
}

Term Generator::exact(const Term& t) {
  if (t.range.sharp) return t;
  return {{t.e.pool, t.e.pool->literal(expr::truth(true))}, {1, 1, false, true}};
}

Term Generator::literal(Scope& s, Type type) {
  Pool& p = s.g.pool;
  static const std::vector<double> whole_{0, 1, -1, 2, 3, -2, 5}, fractions{0, 1, -1, 0.5, 2, 0.1, -0.75, 3};
  if (type == Type::boolean) {
    const bool v = c_.below(2);
    return {{&p, p.literal(expr::truth(v))}, whole(v, v)};
  }
  double v = c_.of(type == Type::real && !integer_ ? fractions : whole_);
  if (type == Type::bits) v = std::fabs(v);
  return {{&p, p.number(v, type)}, {v, v, false, double(float(v)) == v}};
}

// A coordinate of a dimension of this size; `inside` says whether it is in range by itself.
Form Generator::view_form(Scope& s, const Extent& size, bool& inside) {
  std::vector<int> same;
  for (int a : s.axes)
    if (s.c.extent(a) == size) same.push_back(a);
  const uint32_t kind = c_.below(12);
  inside = true;
  if (!same.empty() && kind < 7) return axis(c_.of(same));
  if (!same.empty() && kind == 7) return constant(size - Extent(1)) - axis(c_.of(same));
  if (s.axes.empty() || kind == 11) {
    inside = size.is_constant() && size.value() > 0;
    return constant(inside ? int64_t(c_.below(uint32_t(std::min<int64_t>(size.value(), 8)))) : 0);
  }
  const std::vector<int>& from = same.empty() || kind == 10 ? s.axes : same;
  static const std::vector<int64_t> steps{1, 1, 2, -1, 3};
  Form f = c_.of(steps) * axis(c_.of(from)) + constant(int64_t(c_.below(5)) * (c_.below(2) ? 1 : -1));
  if (kind >= 9) f = f + c_.of(steps) * axis(c_.of(s.axes));
  if (kind == 8 && size.is_constant() == false) f = f + constant(size - Extent(1));
  const auto r = ir::range(f, s.c.extents(), s.g.symbols);
  const auto most = size.range(s.g.symbols);
  inside = r.first >= 0 && r.second < most.first;
  return f;
}

// An index value of another tensor: in [0, below) when that is given.
std::optional<int> Generator::index_read(Scope& s, const Extent* below, Range& range) {
  std::vector<Port> ports;
  for (auto& [p, r] : ranges(s.g)) {
    if (s.g.type(p) != Type::index || s.g.shape(p).size() > 2 || r.infinite || !r.sharp) continue;
    if (below && (r.lo < 0 || r.hi >= double(size_of(*below)))) continue;
    if (s.g[p.node].comp() && (s.g[p.node].comp()->is_map() && !s.absent)) continue;
    ports.push_back(p);
  }
  if (ports.empty()) return {};
  Arg a{c_.of(ports), {}};
  for (auto& e : s.g.shape(a.from)) {
    std::vector<int> same;
    for (int x : s.axes)
      if (s.c.extent(x) == e) same.push_back(x);
    if (same.empty()) return {};
    a.view.push_back(axis(c_.of(same)));
  }
  range = ranges(s.g).at(a.from);
  s.c.args.push_back(a);
  return int(s.c.args.size()) - 1;
}

Domain Generator::domain(Scope& s) {
  Domain d;
  if (s.axes.empty()) return everywhere();
  const uint32_t pieces = 1 + c_.below(8) / 6;
  for (uint32_t p = 0; p < pieces; ++p) {
    Conj c;
    const int last = s.axes.back(), any = c_.of(s.axes);
    const int64_t k = int64_t(c_.below(4));
    switch (c_.below(7)) {
    case 0: insert(c, axis(any) - axis(last) + constant(k)); break; // causal, or nothing when they are one
    case 1:                                                         // a window
      insert(c, axis(any) - axis(last) + constant(0));
      insert(c, axis(last) - axis(any) + constant(k));
      break;
    case 2: insert(c, axis(any) - constant(k)); break;
    case 3: insert(c, constant(s.c.extent(any) - Extent(1 + k)) - axis(any)); break;
    case 4: insert(c, axis(any) + axis(last) - constant(k)); break;
    case 5: { // an index known before the loop
      Range r;
      Scope outer = s;
      outer.axes.pop_back();
      if (auto u = index_read(outer, nullptr, r))
        insert(c, uniform(*u) - axis(last));
      else
        insert(c, constant(k) - axis(last));
      break;
    }
    default: insert(c, 2 * axis(any) - axis(last) + constant(k)); break;
    }
    d.push_back(c);
  }
  return normal(d);
}

E Generator::holds(Scope& s, const Domain& d) {
  s.c.guards.push_back(d);
  return {&s.g.pool, s.g.pool.leaf(Op::holds, Type::boolean, int64_t(s.c.guards.size()) - 1)};
}

std::optional<Term> Generator::read(Scope& s, Type type) {
  std::vector<Port> ports;
  for (auto& [p, r] : ranges(s.g)) {
    // What does not exist everywhere makes the term that reads it partial.
    if (s.g.type(p) == type) ports.push_back(p);
  }
  if (ports.empty()) return {};
  // The latest node is the simplest choice: chains grow.
  Arg a{ports[ports.size() - 1 - c_.below(uint32_t(ports.size()))], {}};
  Conj within;
  for (auto& e : s.g.shape(a.from)) {
    Range r;
    if (c_.chance(10))
      if (auto u = index_read(s, &e, r)) {
        a.view.push_back(uniform(*u));
        continue;
      }
    bool inside = true;
    const Form f = view_form(s, e, inside);
    a.view.push_back(f);
    if (!inside) {
      insert(within, f);
      insert(within, constant(e - Extent(1)) - f);
    }
  }
  s.c.args.push_back(a);
  Range r = ranges(s.g).at(a.from);
  E e{&s.g.pool, s.g.pool.leaf(Op::arg, type, int64_t(s.c.args.size()) - 1)};
  const Comp* source = s.g[a.from.node].comp();
  const bool partial = !source || source->is_map();
  if (!within.empty()) e = expr::only(holds(s, normal({within})), e);
  if ((!within.empty() || partial) && (!s.absent || (!within.empty() && c_.below(3) < 2))) {
    Term pad = literal(s, type);
    if (type == Type::real && c_.chance(6)) pad = {expr::lit_like(e, -inf), {0, 0, true, true}};
    e = expr::or_else(e, pad.e);
    r = joined(r, pad.range);
  }
  return Term{e, r};
}

Term Generator::real_term(Scope& s, int depth) {
  const Term x = finite(term(s, Type::real, depth));
  const E a = x.e;
  const Range& r = x.range;
  auto rounded = [&](E e, double lo, double hi) { return Term{e, {lo, hi, false, false}}; };
  const uint32_t kind = c_.below(integer_ ? 11 : 24);
  switch (kind) {
  case 0: return x;
  case 1:
  case 2:
  case 3:
  case 9: {
    const Term y = finite(term(s, Type::real, depth));
    if (kind < 3) return limited({a + y.e, {r.lo + y.range.lo, r.hi + y.range.hi, false, integer_}}, most());
    Range p = product(r, y.range);
    p.sharp = integer_;
    return limited({a * y.e, p}, most());
  }
  case 4: return {-a, {-r.hi, -r.lo, false, r.sharp}};
  case 5: {
    const Term y = term(s, Type::real, depth);
    return c_.below(2) ? Term{expr::max(a, y.e),
                              {std::max(r.lo, std::min(y.range.lo, r.hi)), std::max(r.hi, y.range.hi), false,
                               r.sharp && y.range.sharp}}
                       : Term{expr::min(a, y.e),
                              {std::min(r.lo, y.range.lo), r.hi, y.range.infinite, r.sharp && y.range.sharp}};
  }
  case 6: return {expr::relu(a), {std::max(0.0, r.lo), std::max(0.0, r.hi), false, r.sharp}};
  case 7: {
    const Term i = finite(term(s, Type::index, depth));
    const Term l = limited(i, 4096);
    return {expr::to_real(l.e), l.range};
  }
  case 8: return {expr::floor(a), {std::floor(r.lo), std::ceil(r.hi), false, integer_ && r.sharp}};
  case 10: return limited({expr::square(a), {0, r.size() * r.size(), false, integer_}}, most());
  case 11: return rounded(expr::tanh(a), -1, 1);
  case 12: return rounded(expr::sigmoid(a), 0, 1);
  case 13: return rounded(expr::exp(expr::min(a, expr::lit_like(a, 3))), 0, 20.1);
  case 14: return rounded(a * expr::recip(expr::square(a) + 1), -1, 1);
  case 15: return rounded(expr::sqrt(expr::square(a) + 0.5), 0.7, r.size() + 1);
  case 16: return rounded(expr::log(expr::square(a) + 0.25), -2, 20);
  case 17: {
    const Term y = finite(term(s, Type::real, depth));
    return rounded(expr::ratio(a, expr::abs(y.e) + 1), -r.size(), r.size());
  }
  case 18: return rounded(expr::sin(a), -1, 1);
  case 19: return rounded(expr::gelu(limited(x, 16).e), -1, 16);
  case 20: return rounded(expr::erf(a), -1, 1);
  case 21: return rounded(expr::silu(limited(x, 16).e), -1, 16);
  case 22: return rounded(a * 0.3, -r.size(), r.size());
  default: {
    const Term y = finite(term(s, Type::real, depth));
    return rounded(expr::atan2(y.e, expr::abs(a) + 0.5), -1.6, 1.6);
  }
  }
}

Term Generator::whole_term(Scope& s, Type type, int depth) {
  const Term x = finite(term(s, type, depth));
  const E a = x.e;
  const Range& r = x.range;
  const bool bits = type == Type::bits;
  switch (c_.below(9)) {
  case 0: return x;
  case 1: {
    const Term y = finite(term(s, type, depth));
    return limited({a + y.e, {r.lo + y.range.lo, r.hi + y.range.hi, false, r.sharp && y.range.sharp}},
                   most());
  }
  case 2: {
    const Term y = limited(finite(term(s, type, depth)), 64);
    return limited({a * y.e, product(r, y.range)}, most());
  }
  case 3: {
    if (bits) return x;
    return {-a, {-r.hi, -r.lo, false, r.sharp}};
  }
  case 4: {
    const Term y = finite(term(s, type, depth));
    return {c_.below(2) ? expr::max(a, y.e) : expr::min(a, y.e), joined(r, y.range)};
  }
  case 5: {
    const double k = 2 + c_.below(4);
    return {expr::apply(Op::mod, a, expr::lit_like(a, k)), {0, k - 1, false, r.sharp}};
  }
  case 6: {
    const double k = 2 + c_.below(4);
    return {expr::apply(Op::div, a, expr::lit_like(a, k)),
            {std::floor(r.lo / k), std::floor(r.hi / k), false, r.sharp}};
  }
  case 7: {
    if (r.lo < 0) return x;
    const double k = double(int64_t(1) << c_.below(6)) - 1;
    return {expr::apply(Op::bit_and, a, expr::lit_like(a, k)), {0, std::min(k, r.hi), false, r.sharp}};
  }
  default: {
    const Term y = exact(term(s, Type::boolean, depth));
    return {bits ? expr::to_bits(y.e) : expr::to_index(y.e), whole(0, 1)};
  }
  }
}

Term Generator::bool_term(Scope& s, int depth) {
  const Term truth = {{&s.g.pool, s.g.pool.literal(expr::truth(true))}, whole(1, 1)};
  switch (c_.below(6)) {
  case 0: return {holds(s, domain(s)), whole(0, 1)};
  case 1: {
    const Type t = c_.below(3) ? Type::real : Type::index;
    const Term x = term(s, t, depth), y = term(s, t, depth);
    if (!x.range.sharp || !y.range.sharp) return truth;
    return {c_.below(3) ? x.e < y.e : x.e == y.e, whole(0, 1)};
  }
  case 2: {
    const Term x = term(s, Type::boolean, depth), y = term(s, Type::boolean, depth);
    return {c_.below(2) ? x.e && y.e : x.e || y.e, {0, 1, false, x.range.sharp && y.range.sharp}};
  }
  case 3: {
    const Term x = term(s, Type::boolean, depth);
    return {!x.e, {0, 1, false, x.range.sharp}};
  }
  default: return term(s, Type::boolean, depth);
  }
}

Term Generator::term(Scope& s, Type type, int depth) {
  Pool& p = s.g.pool;
  if (depth <= 0 || c_.chance(6)) {
    if (c_.below(8) < 7)
      if (auto r = read(s, type)) return *r;
    if (type == Type::index && !s.axes.empty()) {
      const int a = c_.of(s.axes);
      return {{&p, p.leaf(Op::coord, Type::index, a)}, whole(0, double(size_of(s.c.extent(a))))};
    }
    if (type == Type::boolean && !s.axes.empty()) return {holds(s, domain(s)), whole(0, 1)};
    return literal(s, type);
  }
  if (c_.chance(10)) {
    const Term c = exact(term(s, Type::boolean, depth - 1)), x = term(s, type, depth - 1),
               y = term(s, type, depth - 1);
    Range r = joined(x.range, y.range);
    r.sharp &= c.range.sharp;
    return {expr::select(c.e, x.e, y.e), r};
  }
  if (c_.chance(12)) { // exists only where a condition holds
    const Term c = exact(term(s, Type::boolean, depth - 1)), x = term(s, type, depth - 1);
    if (s.absent && c_.below(2)) return {expr::only(c.e, x.e), x.range};
    const Term y = term(s, type, depth - 1);
    return {expr::or_else(expr::only(c.e, x.e), y.e), joined(x.range, y.range)};
  }
  switch (type) {
  case Type::real: return real_term(s, depth - 1);
  case Type::boolean: return bool_term(s, depth - 1);
  default: return whole_term(s, type, depth - 1);
  }
}

} // namespace tang::fuzz
