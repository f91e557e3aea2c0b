// Expressions as a person writes them: E is a term and its pool; the elementary functions are built from the
// op table.
#pragma once
#include "tang/expr/pool.hpp"

namespace tang::expr {

struct E {
  Pool* pool = nullptr;
  Id id = 0;

  Type type() const { return (*pool)[id].type; }
};

inline E lit(Pool& p, double r) { return {&p, p.literal(r)}; }

inline E lit_like(E a, double v) { return {a.pool, a.pool->number(v, a.type())}; }

inline E apply(Op op, E a) { return {a.pool, a.pool->make(op, {a.id})}; }

inline E apply(Op op, E a, E b) { return {a.pool, a.pool->make(op, {a.id, b.id})}; }

inline E apply(Op op, E a, E b, E c) { return {a.pool, a.pool->make(op, {a.id, b.id, c.id})}; }

inline E operator+(E a, E b) { return apply(Op::add, a, b); }

inline E operator*(E a, E b) { return apply(Op::mul, a, b); }

inline E operator-(E a) { return apply(Op::neg, a); }

inline E operator-(E a, E b) { return a + -b; }

inline E recip(E a) { return apply(Op::recip, a); }

inline E operator/(E a, E b) { return a.type() == Type::real ? a * recip(b) : apply(Op::div, a, b); }

inline E operator%(E a, E b) { return apply(Op::mod, a, b); }

inline E operator+(E a, double c) { return a + lit_like(a, c); }

inline E operator+(double c, E a) { return lit_like(a, c) + a; }

inline E operator-(E a, double c) { return a - lit_like(a, c); }

inline E operator-(double c, E a) { return lit_like(a, c) - a; }

inline E operator*(E a, double c) { return a * lit_like(a, c); }

inline E operator*(double c, E a) { return lit_like(a, c) * a; }

inline E operator/(E a, double c) { return a / lit_like(a, c); }

inline E operator/(double c, E a) { return lit_like(a, c) / a; }

inline E operator<(E a, E b) { return apply(Op::less, a, b); }

inline E operator>(E a, E b) { return b < a; }

inline E operator==(E a, E b) { return apply(Op::equal, a, b); }

inline E operator!(E a) { return apply(Op::flip, a); }

inline E operator&&(E a, E b) { return apply(Op::both, a, b); }

inline E operator||(E a, E b) { return apply(Op::either, a, b); }

// NaN makes both false, as in C.
inline E operator<=(E a, E b) { return a < b || a == b; }

inline E operator>=(E a, E b) { return b <= a; }

inline E max(E a, E b) { return apply(Op::max, a, b); }

inline E min(E a, E b) { return apply(Op::min, a, b); }

inline E abs(E a) { return max(a, -a); }

inline E sqrt(E a) { return apply(Op::sqrt, a); }

inline E sin(E a) { return apply(Op::sin, a); }

inline E atan2(E y, E x) { return apply(Op::atan2, y, x); }

inline E exp2(E a) { return apply(Op::exp2, a); }

inline E log2(E a) { return apply(Op::log2, a); }

inline E floor(E a) { return apply(Op::floor, a); }

inline E is_nan(E a) { return apply(Op::is_nan, a); }

inline E ratio(E a, E l) { return apply(Op::ratio, a, l); } // 0 where l is 0: nothing was folded

inline E select(E c, E a, E b) { return apply(Op::select, c, a, b); }

inline E only(E c, E a) { return apply(Op::only, c, a); }

inline E or_else(E a, E b) { return apply(Op::or_else, a, b); }

inline E to_real(E a) { return a.type() == Type::real ? a : apply(Op::to_real, a); }

inline E to_index(E a) { return a.type() == Type::index ? a : apply(Op::to_index, a); }

inline E to_bits(E a) { return a.type() == Type::bits ? a : apply(Op::to_bits, a); }

// Spellings. Each stays finite, with finite derivatives, wherever the true value is: the exponential's
// argument is never positive.
inline constexpr double log2_e = 1.4426950408889634074;
inline constexpr double ln_2 = 0.69314718055994530942;
inline constexpr double pi = 3.14159265358979323846;
E exp(E a);
E log(E a);
E cos(E a);
E tanh(E a);
E sigmoid(E a);
E silu(E a);
E softplus(E a);
E relu(E a);
E square(E a);
E erf(E a);       // |error| < 2e-15 in f64; see build.cpp
E gelu(E a);      // x Phi(x)
E gelu_tanh(E a); // the tanh form that GPT-2 uses
E elu(E a);
E power(E a, int n);

} // namespace tang::expr
