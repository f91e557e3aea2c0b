// Scalars, indices and guards: trees in the builder's own pool.
#include "tang/ir/surface.hpp"

#include <mutex>

#include "tang/ir/builder_state.hpp"

namespace tang::ir {

namespace {
struct AxisRegistry {
  std::mutex lock;
  uint32_t last = 0;
  std::map<uint32_t, Extent> declared;
};

AxisRegistry& registry() {
  static AxisRegistry r;
  return r;
}

Builder* builder_of(const std::vector<Scalar>& s) {
  for (auto& x : s)
    if (x.builder()) return x.builder();
  return nullptr;
}
} // namespace

uint32_t fresh_axis() {
  std::lock_guard hold(registry().lock);
  return ++registry().last;
}

Axis axis(std::string name) { return {fresh_axis(), std::move(name)}; }

Axis axis(std::string name, Extent extent) {
  Axis a{fresh_axis(), std::move(name)};
  std::lock_guard hold(registry().lock);
  registry().declared.emplace(a.id, std::move(extent));
  return a;
}

std::optional<Extent> declared_extent(const Axis& a) {
  std::lock_guard hold(registry().lock);
  auto it = registry().declared.find(a.id);
  return it == registry().declared.end() ? std::nullopt : std::optional(it->second);
}

Type Scalar::type() const { return builder_ ? builder_->state().pool[id_].type : Type::real; }

Id own(Builder& b, const Scalar& s) {
  if (s.builder() && s.builder() != &b)
    throw Error({}, "values of two graphs meet in one expression",
                {{"a recurrence's step is a graph of its own", {}}},
                "store the value with map(..) where it was computed, and read that tensor");
  return s.builder() ? s.id() : b.state().pool.literal(s.constant());
}

Id own_like(Builder& b, const Scalar& s, Type type) {
  return s.builder() ? own(b, s) : b.state().pool.number(s.constant(), type);
}

Scalar apply(Op op, const std::vector<Scalar>& operands) {
  Builder* b = builder_of(operands);
  check(b, "an operation on plain numbers only");
  Type type = Type::real; // plain numbers follow the first operand that has a type, conditions aside
  const size_t from = op == Op::select || op == Op::only ? 1 : 0;
  for (size_t k = operands.size(); k-- > from;)
    if (operands[k].builder()) type = operands[k].type();
  std::vector<Id> ids;
  for (auto& s : operands) ids.push_back(own_like(*b, s, type));
  return {b, b->state().pool.make(op, ids)};
}

namespace {
Scalar binary(Op op, const Scalar& a, const Scalar& b) { return apply(op, {a, b}); }

template <class F> Scalar unary(const Scalar& a, F f) {
  check(a.builder(), "an operation on a plain number");
  return {a.builder(), f(expr::E{&a.builder()->state().pool, a.id()}).id};
}

bool plain(const Scalar& a) { return !a.builder(); }
} // namespace

Scalar operator+(const Scalar& a, const Scalar& b) {
  return plain(a) && plain(b) ? Scalar(a.constant() + b.constant()) : binary(Op::add, a, b);
}

Scalar operator-(const Scalar& a) { return plain(a) ? Scalar(-a.constant()) : apply(Op::neg, {a}); }

Scalar operator-(const Scalar& a, const Scalar& b) { return a + -b; }

Scalar operator*(const Scalar& a, const Scalar& b) {
  return plain(a) && plain(b) ? Scalar(a.constant() * b.constant()) : binary(Op::mul, a, b);
}

Scalar operator/(const Scalar& a, const Scalar& b) {
  if (plain(b)) {
    if (plain(a)) return a.constant() / b.constant();
    return a.type() == Type::real ? a * Scalar(1 / b.constant()) : binary(Op::div, a, b);
  }
  return b.type() == Type::real ? a * apply(Op::recip, {b}) : binary(Op::div, a, b);
}

Scalar operator%(const Scalar& a, const Scalar& b) { return binary(Op::mod, a, b); }

Scalar operator<(const Scalar& a, const Scalar& b) { return binary(Op::less, a, b); }

Scalar operator>(const Scalar& a, const Scalar& b) { return b < a; }

Scalar operator<=(const Scalar& a, const Scalar& b) { return a < b || a == b; }

Scalar operator>=(const Scalar& a, const Scalar& b) { return b <= a; }

Scalar operator==(const Scalar& a, const Scalar& b) { return binary(Op::equal, a, b); }

Scalar operator&&(const Scalar& a, const Scalar& b) { return binary(Op::both, a, b); }

Scalar operator||(const Scalar& a, const Scalar& b) { return binary(Op::either, a, b); }

Scalar operator!(const Scalar& a) { return apply(Op::flip, {a}); }

Scalar max(const Scalar& a, const Scalar& b) { return binary(Op::max, a, b); }

Scalar min(const Scalar& a, const Scalar& b) { return binary(Op::min, a, b); }

Scalar atan2(const Scalar& y, const Scalar& x) { return binary(Op::atan2, y, x); }

Scalar ratio(const Scalar& a, const Scalar& l) { return binary(Op::ratio, a, l); }

Scalar select(const Scalar& c, const Scalar& a, const Scalar& b) { return apply(Op::select, {c, a, b}); }

#define TANG_UNARY(F)                                                                                        \
  Scalar F(const Scalar& a) {                                                                                \
    return unary(a, [](expr::E e) { return expr::F(e); });                                                   \
  }

// clang-format off
TANG_UNARY(exp) TANG_UNARY(exp2) TANG_UNARY(log) TANG_UNARY(log2) TANG_UNARY(sqrt) TANG_UNARY(sin)
TANG_UNARY(cos) TANG_UNARY(tanh) TANG_UNARY(sigmoid) TANG_UNARY(silu) TANG_UNARY(softplus) TANG_UNARY(relu)
TANG_UNARY(square) TANG_UNARY(erf) TANG_UNARY(gelu) TANG_UNARY(gelu_tanh) TANG_UNARY(elu) TANG_UNARY(recip)
TANG_UNARY(abs) TANG_UNARY(floor) TANG_UNARY(is_nan) TANG_UNARY(to_real) TANG_UNARY(to_index)
TANG_UNARY(to_bits)
// clang-format on
#undef TANG_UNARY
                    Scalar index_literal(Builder& b, int64_t v) {
  return {&b, b.state().pool.literal(expr::whole(v))};
}

// Indices and guards.

Index::Index(const Scalar& s) {
  if (!s.builder()) {
    c = Extent(int64_t(s.constant()));
    return;
  }
  if (s.type() != Type::index)
    throw Error({}, std::string("a coordinate of type ") + expr::name(s.type()),
                {{"coordinates and bounds are index values", {}}}, "convert it: to_index(..)");
  values.push_back({s, 1});
}

Index operator*(int64_t k, Index a) {
  a.c = Extent(k) * a.c;
  for (auto& t : a.axes) t.second *= k;
  for (auto& t : a.values) t.second *= k;
  return a;
}

Index operator+(Index a, const Index& b) {
  a.c = a.c + b.c;
  a.axes.insert(a.axes.end(), b.axes.begin(), b.axes.end());
  a.values.insert(a.values.end(), b.values.begin(), b.values.end());
  return a;
}

Index operator-(Index a, const Index& b) { return a + (-1) * b; }

Guard operator>=(const Index& a, const Index& b) { return {{{a - b}}}; }

Guard operator<=(const Index& a, const Index& b) { return b >= a; }

Guard operator<(const Index& a, const Index& b) { return {{{b - a - Index(1)}}}; }

Guard operator>(const Index& a, const Index& b) { return b < a; }

Guard operator==(const Index& a, const Index& b) { return {{{a - b, b - a}}}; }

Guard operator!=(const Index& a, const Index& b) { return a < b || a > b; }

Guard operator||(const Guard& a, const Guard& b) {
  Guard out = a;
  out.pieces.insert(out.pieces.end(), b.pieces.begin(), b.pieces.end());
  return out;
}

Guard operator&&(const Guard& a, const Guard& b) {
  Guard out;
  for (auto& x : a.pieces)
    for (auto& y : b.pieces) {
      out.pieces.push_back(x);
      out.pieces.back().insert(out.pieces.back().end(), y.begin(), y.end());
    }
  return out;
}

Guard always() { return {{{}}}; }

Scalar as_scalar(const Guard& g, const Scalar& near) {
  Builder* b = near.builder();
  for (auto& piece : g.pieces)
    for (auto& i : piece)
      for (auto& v : i.values)
        if (!b) b = v.first.builder();
  if (!b)
    throw Error(g.where, "a guard around plain numbers only", {},
                "put a tensor read or iota(axis) inside, so that the guard has a graph");
  Domain d;
  for (auto& piece : g.pieces) {
    Conj c;
    for (auto& i : piece) insert(c, b->state().form(i, g.where));
    d.push_back(c);
  }
  return {b, b->state().guard(normal(std::move(d)))};
}

Scalar masked(const Guard& g, const Scalar& e) { return apply(Op::only, {as_scalar(g, e), e}); }

Scalar masked(const Scalar& c, const Scalar& e) { return apply(Op::only, {c, e}); }

Scalar or_else(const Scalar& e, const Scalar& v) { return binary(Op::or_else, e, v); }

Scalar where(const Guard& g, const Scalar& e, const Scalar& v) {
  if (!e.builder() && v.builder())
    return or_else(
        apply(Op::only, {as_scalar(g, v), Scalar(v.builder(), own_like(*v.builder(), e, v.type()))}), v);
  return or_else(masked(g, e), v);
}

Scalar where(const Scalar& c, const Scalar& e, const Scalar& v) { return or_else(masked(c, e), v); }

} // namespace tang::ir
