#include "tang/expr/simplify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tang/expr/build.hpp"
#include "tang/expr/term_table.hpp"

namespace tang::expr {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr size_t most_terms = 64; // a product that would expand further stays as written

class Simplifier {
public:
  Simplifier(Pool& p, const Facts& facts, bool exact)
      : p_(p), facts_(facts), exact_(exact), order_{&p}, rank_(facts.rank) {}

  Id operator()(Id id) {
    if (memo_.has(id)) return memo_[id];
    const Id out = simplify(id);
    memo_.set(id, out), memo_.set(out, out);
    return out;
  }

private:
  struct Order {
    const Pool* p;

    bool operator()(Id a, Id b) const { return p->before(a, b); }
  };

  using Product = std::map<Id, int, Order>; // atom -> exponent

  struct ProductOrder {
    Order order;

    bool operator()(const Product& a, const Product& b) const {
      auto less = [&](const auto& x, const auto& y) {
        return x.first != y.first ? order(x.first, y.first) : x.second < y.second;
      };
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), less);
    }
  };

  using Poly = std::map<Product, double, ProductOrder>;

  Pool& p_;
  const Facts& facts_;
  bool exact_;
  Order order_;
  const std::map<Id, int>& rank_;
  TermTable memo_;
  std::unordered_map<Id, Poly> polys_;

  Product one() const { return Product(order_); }

  Product power(Id atom, int k) const {
    Product q(order_);
    q[atom] = k;
    return q;
  }

  Poly poly_of(Product q, double c) const {
    Poly out(ProductOrder{order_});
    if (c != 0) out.emplace(std::move(q), c);
    return out;
  }

  Poly constant(double c) const { return poly_of(one(), c); }

  bool boolean(Id id, bool b) const {
    return p_[id].op == Op::literal && p_[id].type == Type::boolean && bool(p_[id].whole) == b;
  }

  // +-inf or NaN constant term, else 0.
  double unbounded(const Poly& a) const {
    auto it = a.find(one());
    return it != a.end() && !std::isfinite(it->second) ? it->second : 0;
  }

  static bool is_unbounded(double u) { return u != 0 || std::isnan(u); }

  Poly plus(Poly a, const Poly& b) const {
    for (auto& [m, c] : b) {
      auto [it, fresh] = a.emplace(m, c);
      if (!fresh && (it->second += c) == 0) a.erase(it);
    }
    if (const double u = unbounded(a); is_unbounded(u)) return constant(u); // -inf + e = -inf unless NaN
    return a;
  }

  Poly times(const Poly& a, const Poly& b, Type type) {
    if (a.empty() || b.empty()) return constant(0); // 0 * e = 0 unless NaN
    for (auto* x : {&a, &b}) {
      const double u = unbounded(*x);
      if (!is_unbounded(u)) continue;
      const Id other = build(x == &a ? b : a, type);
      if (p_[other].op == Op::literal) return constant(u * p_[other].r);
      if (positive(p_, other)) return constant(u);
      return poly_of(power(p_.make(Op::mul, {p_.literal(u), other}), 1), 1); // its sign is unknown: opaque
    }
    // x (y + z) = x y + x z fails for an infinite x: inf (2 - 1) is no NaN.
    const bool distributes = (a.size() == 1 || numbers(b)) && (b.size() == 1 || numbers(a));
    if (a.size() * b.size() > most_terms || !distributes)
      return poly_of(power(p_.make(Op::mul, {build(a, type), build(b, type)}), 1), 1);
    Poly out = constant(0);
    for (auto& [m, c] : a)
      for (auto& [n, d] : b) out = plus(out, joined(m, n, c * d, type));
    return out;
  }

  // No factor is infinite where the leaves are numbers (1/0 is no number either, see docs/proofs.md).
  bool numbers(const Poly& a) const {
    for (auto& [m, c] : a)
      for (auto& [atom, k] : m)
        if (k > 0 && !never_infinite(p_, atom)) return false;
    return true;
  }
  // One product of two monomials; exp2 a * exp2 b = exp2 (a + b).
  Poly joined(const Product& m, const Product& n, double scale, Type type) {
    Product q = m;
    for (auto& [atom, k] : n)
      if ((q[atom] += k) == 0) q.erase(atom);
    int exponentials = 0;
    for (auto& [atom, k] : q) exponentials += p_[atom].op == Op::exp2 ? std::abs(k) : 0;
    if (exponentials > 1 || (exponentials == 1 && has_inverse_exponential(q))) {
      Poly exponent = constant(0);
      for (auto it = q.begin(); it != q.end();) {
        if (p_[it->first].op != Op::exp2) {
          ++it;
          continue;
        }
        exponent = plus(exponent, times(constant(it->second), poly(p_[it->first].args[0]), type));
        it = q.erase(it);
      }
      const Id e = exponential(exponent);
      if (p_[e].op == Op::literal)
        scale *= p_[e].r;
      else
        q[e] += 1;
    }
    return poly_of(std::move(q), scale);
  }

  bool has_inverse_exponential(const Product& q) const {
    return std::any_of(q.begin(), q.end(),
                       [&](auto& f) { return p_[f.first].op == Op::exp2 && f.second < 0; });
  }

  Id exponential(const Poly& a) {
    if (a.empty()) return p_.literal(1.0);
    if (const double u = unbounded(a); is_unbounded(u)) return p_.literal(std::exp2(u)); // exp2(-inf) = 0
    return p_.make(Op::exp2, {build(a, Type::real)});
  }

  Poly reciprocal(const Poly& b) {
    if (b.size() == 1 && !is_unbounded(unbounded(b))) {
      Product q(order_);
      for (auto& [atom, k] : b.begin()->first) q[atom] = -k;
      // An exponential is never 0, so its reciprocal is an exponential too.
      return times(poly_of(std::move(q), 1 / b.begin()->second), constant(1), Type::real);
    }
    if (b.empty()) return poly_of(power(p_.make(Op::recip, {p_.literal(0.0)}), 1), 1);
    const Id whole = build(b, Type::real);
    if (p_[whole].op == Op::literal) return constant(1 / p_[whole].r);
    return poly_of(power(whole, -1), 1);
  }

  static bool is_sum(Op op, Type type) {
    return op == Op::add || op == Op::mul || op == Op::neg || (op == Op::recip && type == Type::real);
  }

  const Poly& poly(Id id) { // once a term: without, a value that is used twice at each of n levels costs 2^n
    if (auto it = polys_.find(id); it != polys_.end()) return it->second;
    return polys_.emplace(id, expanded(id)).first->second;
  }

  Poly expanded(Id id) {
    const Term t = p_[id];
    if (t.op == Op::literal) return constant(t.type == Type::real ? t.r : double(t.whole));
    if (t.op == Op::add) return plus(poly(t.args[0]), poly(t.args[1]));
    if (t.op == Op::mul) return times(poly(t.args[0]), poly(t.args[1]), t.type);
    if (t.op == Op::neg) return times(constant(-1), poly(t.args[0]), t.type);
    if (t.op == Op::recip) return reciprocal(poly(t.args[0]));
    const Id atom = (*this)(id);
    const Term& s = p_[atom];
    if ((s.op == Op::literal || is_sum(s.op, s.type)) && atom != id) return poly(atom);
    return poly_of(power(atom, 1), 1);
  }

  Id build(const Poly& a, Type type) {
    std::optional<Id> sum;
    for (auto& [m, c] : a) {
      std::optional<Id> term;
      auto grow = [&](Id x) { term = term ? p_.make(Op::mul, {*term, x}) : x; };
      if (c != 1 && !(c == -1 && !m.empty())) grow(p_.number(c, type));
      for (auto& [atom, k] : m)
        for (int n = 0; n < std::abs(k); ++n) grow(k > 0 ? atom : p_.make(Op::recip, {atom}));
      if (!term) term = p_.number(1, type);
      if (c == -1 && !m.empty()) term = p_.make(Op::neg, {*term});
      sum = sum ? p_.make(Op::add, {*sum, *term}) : *term;
    }
    return sum ? *sum : p_.number(0, type);
  }

  // Integer polynomials beyond 2^53 would lose bits in a double; those stay as written.
  bool fits(Id id) const {
    for (Id x : schedule(p_, {id}))
      if (p_[x].op == Op::literal && p_[x].type != Type::real && std::llabs(p_[x].whole) > (int64_t(1) << 24))
        return false;
    return true;
  }

  // max or min: flat, sorted by structure, without what is known to lose.
  Id extreme(Op op, Id id) {
    std::set<Id, Order> flat(order_);
    std::function<void(Id)> take = [&](Id x) {
      if (p_[x].op == op) {
        take(p_[x].args[0]);
        take(p_[x].args[1]);
        return;
      }
      const Id s = (*this)(x);
      if (p_[s].op == op && s != x)
        take(s);
      else
        flat.insert(s);
    };
    take(id);
    for (Id a : flat)
      if (p_[a].op == Op::literal && std::isnan(p_[a].r)) return a;
    const bool up = op == Op::max;
    auto loses = [&](Id a) {
      const Term& t = p_[a];
      if (t.op == Op::literal && t.type == Type::real && t.r == (up ? -inf : inf)) return flat.size() > 1;
      for (Id b : flat) {
        if (b == a) continue;
        const Term& u = p_[b];
        if (t.op == Op::literal && u.op == Op::literal) {
          const bool lower = t.type == Type::real ? t.r < u.r : t.whole < u.whole;
          if (lower == up) return true;
        }
        auto ra = rank_.find(a), rb = rank_.find(b);
        if (ra != rank_.end() && rb != rank_.end() && (ra->second < rb->second) == up) return true;
      }
      return false;
    };
    std::optional<Id> out;
    for (Id a : flat)
      if (!loses(a)) out = out ? p_.make(op, {*out, a}) : a;
    return *out;
  }

  Id simplify(Id id) {
    const Term t = p_[id];
    if (auto it = facts_.truth.find(id); it != facts_.truth.end()) return p_.literal(truth(it->second));
    if (!t.arity()) return id;
    const bool algebra = !exact_ || t.type != Type::real;
    if (is_sum(t.op, t.type) && algebra && (t.type == Type::real || fits(id))) return build(poly(id), t.type);
    if (t.op == Op::max || t.op == Op::min) return extreme(t.op, id);
    if (t.op == Op::exp2 && !exact_) return exponential(poly(t.args[0]));
    // A comparison looks at a NaN and answers something else: below it only exact steps are refinements.
    const bool looks = (t.op == Op::less || t.op == Op::equal || t.op == Op::is_nan) &&
                       p_[t.args[0]].type == Type::real && !exact_;
    std::array<Id, 3> a{};
    if (looks) {
      Simplifier below(p_, facts_, true);
      for (size_t k = 0; k < size_t(t.arity()); ++k) a[k] = below(t.args[k]);
    } else {
      for (size_t k = 0; k < size_t(t.arity()); ++k) a[k] = (*this)(t.args[k]);
    }
    const Id out = folded(t, a);
    if (auto it = facts_.truth.find(out); it != facts_.truth.end()) return p_.literal(truth(it->second));
    return out;
  }

  Id folded(const Term& t, std::array<Id, 3>& a) {
    auto constant_at = [&](size_t k) { return p_[a[k]].op == Op::literal; };
    auto value = [&](size_t k) { return Value{p_[a[k]].type, State::present, p_[a[k]].r, p_[a[k]].whole}; };
    const bool strict = t.op != Op::select && t.op != Op::only && t.op != Op::or_else;
    if (strict && constant_at(0) && (t.arity() < 2 || constant_at(1)))
      return p_.literal(compute(t.op, value(0), value(size_t(t.arity() - 1))));
    switch (t.op) {
    case Op::log2:
      if (p_[a[0]].op == Op::exp2 && !exact_) return p_[a[0]].args[0];
      break;
    case Op::less:
    case Op::equal: return compared(t.op, a);
    case Op::both:
    case Op::either: {
      const bool absorbs = t.op == Op::either; // true absorbs in `or`, false in `and`
      if (boolean(a[0], absorbs) || boolean(a[1], absorbs)) return p_.literal(truth(absorbs));
      if (boolean(a[0], !absorbs) || a[0] == a[1]) return a[1];
      if (boolean(a[1], !absorbs)) return a[0];
      if (p_.before(a[1], a[0])) std::swap(a[0], a[1]);
      break;
    }
    case Op::flip:
      if (p_[a[0]].op == Op::flip) return p_[a[0]].args[0];
      break;
    case Op::ratio:
      if (constant_at(0) && p_[a[0]].r == 0 && !exact_) return a[0];
      if (constant_at(1) && p_[a[1]].r != 0 && !exact_)
        return (*this)(p_.make(Op::mul, {a[0], p_.literal(1 / p_[a[1]].r)}));
      break;
    case Op::select:
      if (constant_at(0)) return a[p_[a[0]].whole ? 1 : 2];
      if (a[1] == a[2]) return a[1];
      break;
    case Op::only:
      if (boolean(a[0], true)) return a[1];
      break;
    default: // below a comparison sums and products keep their brackets, but not the order of two operands
      if (row(t.op).commutative && p_.before(a[1], a[0])) std::swap(a[0], a[1]);
    }
    return p_.make(t.op, a.data(), size_t(t.arity()));
  }

  Id compared(Op op, std::array<Id, 3>& a) {
    const Term& u = p_[a[0]];
    const bool number =
        u.type != Type::real || u.op == Op::literal || rank_.count(a[0]); // x == x fails for a NaN
    if (a[0] == a[1] && (op == Op::less || number)) return p_.literal(truth(op == Op::equal));
    auto x = rank_.find(a[0]), y = rank_.find(a[1]);
    if (x != rank_.end() && y != rank_.end())
      return p_.literal(truth(op == Op::less && x->second < y->second));
    if (op == Op::equal && p_.before(a[1], a[0])) std::swap(a[0], a[1]);
    return p_.make(op, {a[0], a[1]});
  }
};

} // namespace

bool never_infinite(const Pool& p, Id id) {
  TermTable never;
  walk(p, id, never, [](Id) { return false; }, [&](Id x) {
    const Term& t = p[x];
    bool ok = t.op != Op::log2 && !(t.op == Op::literal && t.type == Type::real && std::isinf(t.r));
    const int from = t.op == Op::select || t.op == Op::only ? 1 : 0, to = t.op == Op::ratio ? 1 : t.arity();
    if (t.type == Type::real && t.op != Op::recip && t.op != Op::to_real)
      for (int k = from; k < to; ++k) ok = ok && never[t.args[size_t(k)]];
    never.set(x, ok);
  });
  return never[id];
}
Id simplify(Pool& p, Id id, const Facts& facts, bool exact) { return Simplifier(p, facts, exact)(id); }

bool positive(const Pool& p, Id id) {
  const Term& t = p[id];
  if (t.op == Op::literal) return t.type == Type::real && t.r > 0;
  if (t.op == Op::add || t.op == Op::mul) return positive(p, t.args[0]) && positive(p, t.args[1]);
  if (t.op == Op::recip) return positive(p, t.args[0]);
  return t.op == Op::exp2;
}

bool finite(const Pool& p, Id id) {
  for (Id x : schedule(p, {id})) {
    const Term& t = p[x];
    if (t.op == Op::literal && t.type == Type::real && !std::isfinite(t.r)) return false;
    if (t.op == Op::log2 || t.op == Op::sqrt || t.op == Op::or_else) return false;
    if (t.op == Op::recip && !positive(p, t.args[0])) return false;
  }
  return true;
}

std::vector<Id> factors(const Pool& p, Id id) {
  if (p[id].op != Op::mul) return {id};
  std::vector<Id> out = factors(p, p[id].args[0]), right = factors(p, p[id].args[1]);
  out.insert(out.end(), right.begin(), right.end());
  return out;
}

Id product(Pool& p, const std::vector<Id>& f) {
  if (f.empty()) return p.literal(1.0);
  Id out = f[0];
  for (size_t k = 1; k < f.size(); ++k) out = p.make(Op::mul, {out, f[k]});
  return out;
}

std::vector<Id> addends(const Pool& p, Id id) {
  if (p[id].op != Op::add) return {id};
  std::vector<Id> out = addends(p, p[id].args[0]), right = addends(p, p[id].args[1]);
  out.insert(out.end(), right.begin(), right.end());
  return out;
}

} // namespace tang::expr
