// Terms arranged for lanes that own rows.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/expr/build.hpp"
#include "tang/kernel/row_terms.hpp"

using namespace tang;
using namespace tang::kernel;
using expr::Op;

namespace {
double at(const Pool& p, Id id, double x) {
  return expr::evaluate(p, id, [&](const expr::Term&) { return expr::real(x); }).r;
}

int count(const Pool& p, Id id) {
  int n = 0;
  for (Id t : expr::schedule(p, {id})) n += p[t].arity() > 0;
  return n;
}
} // namespace

// Its derivative, in the form that differentiation leaves, is k (s - s s): one power and one share, which the
// quotient has, too.
TEST(rows_terms, the_derivative_of_an_odd_quotient_reads_its_share) {
  Pool p;
  const expr::E x{&p, p.leaf(Op::arg, expr::Type::real, 0)}, y = x * 0.05, zero = expr::lit_like(x, 0);
  const expr::E e = exp2(expr::abs(y) * -2.0), r = recip(1 + e);
  const expr::E half{&p, p.literal(0.5)}, minus{&p, p.literal(-0.5)};
  const expr::E written =
      select(y < zero, -1.0 * ((2 + r * ((1 - e) * 2.0)) * (r * (e * select(y < -y, minus, half)))),
             (2 + r * ((1 - e) * 2.0)) * (r * (e * select(y < -y, minus, half))));
  const auto all = [&](Id id) { return p[id].op != Op::literal; };
  const Id raw = by_rows(p, written.id, all);
  int powers = 0, shares = 0;
  for (Id t : expr::schedule(p, {raw})) powers += p[t].op == Op::exp2, shares += p[t].op == Op::recip;
  EXPECT_EQ(powers, 1);
  EXPECT_EQ(shares, 1);
  EXPECT_LE(count(p, raw), 9) << count(p, written.id);
  for (double v : {-1e5, -300.0, -20.0, -1.0, 0.0, 1e-3, 7.0, 90.0, 5e4})
    EXPECT_NEAR(at(p, raw, v), at(p, written.id, v), 1e-12) << v;
}

// tanh is written with powers of -|x| on both sides of 0; a lane takes one quotient.
TEST(rows_terms, an_odd_quotient_of_powers_has_one_side) {
  Pool p;
  const expr::E x{&p, p.leaf(Op::arg, expr::Type::real, 0)};
  const Id written = (20 * expr::tanh(x * 0.05)).id;
  const Id made = by_rows(p, written, [&](Id id) { return p[id].op != Op::literal; });
  EXPECT_LE(count(p, made), 7) << count(p, written); // one of them of numbers alone
  for (double v : {-1e4, -300.0, -20.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 7.0, 90.0, 5e3})
    EXPECT_NEAR(at(p, made, v), 20 * std::tanh(v * 0.05), 1e-12) << v;
  EXPECT_TRUE(std::isnan(at(p, made, std::nan(""))));
  // Another condition, another sign, another power: not the same function.
  const expr::E e = exp2(expr::abs(x) * -2.0), t = (1 - e) * recip(1 + e), zero = expr::lit_like(x, 0);
  for (const expr::E& other :
       {select(x < zero, t, t), select(x < zero + 1, -t, t), select(-x < zero, -t, t)}) {
    const Id same = by_rows(p, other.id, [&](Id id) { return p[id].op != Op::literal; });
    for (double v : {-2.0, -0.3, 0.3, 2.0}) EXPECT_NEAR(at(p, same, v), at(p, other.id, v), 1e-12);
  }
}
