#include "tang/expr/facts.hpp"

#include <cmath>
#include <limits>

namespace tang::expr {

const char* name(Kind k) {
  static constexpr const char* names[] = {"real", "finite", "index", "boolean", "partial"};
  return names[size_t(k)];
}

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();

// Why the table is complete. simplify() has four kinds of step, and each is here:
//  1. sums and products (add, mul, neg, recip) become a polynomial and are built again. A polynomial is a
//  commutative ring
//     element: comm, assoc, distribution, units, like terms, signs. Beside the ring there are constants that
//     are not finite (plus, times), powers below 0 (reciprocal) and exponentials (joined, exponential).
//  2. max and min become the set of their operands (extreme): comm, assoc, idempotence, identity, NaN, and an
//  operand that is
//     known to lose, by literals or by rank.
//  3. a decided condition becomes its literal (facts_.truth).
//  4. the cases of folded() and compared(), one fact each; literal operands are computed, of which
//  `literal_*` are samples:
//     compute() in doubles is the op table's meaning, the reals' where no rounding occurs.
// Anything else is rebuilt as it is. Facts that drop an operand hold where it exists (kinds other than
// `partial`): bodies are split by present() first, and a read exists wherever its node's term does
// (docs/semantics.md section 2).
class Table {
public:
  explicit Table(Pool& p) : p_(p) {}

  std::vector<Fact> out;

  E x(int n) { return {&p_, p_.leaf(Op::var, Type::real, n)}; }

  E i(int n) { return {&p_, p_.leaf(Op::var, Type::index, n)}; }

  E b(int n) { return {&p_, p_.leaf(Op::var, Type::boolean, n)}; }

  E c(double v) { return lit(p_, v); }

  E whole(int64_t v) { return {&p_, p_.literal(expr::whole(v))}; }

  E is(bool v) { return {&p_, p_.literal(truth(v))}; }

  void exact(const char* name, std::vector<Kind> kinds, E l, E r, std::vector<E> premises = {}) {
    add(Fact::exact, name, kinds, l, r, premises);
  }

  void algebraic(const char* name, std::vector<Kind> kinds, E l, E r, std::vector<E> premises = {}) {
    add(Fact::algebraic, name, kinds, l, r, premises);
  }

  void split(const char* name, std::vector<Kind> kinds, E l, E r) {
    add(Fact::exact, name, kinds, l, r, {});
    out.back().by = Fact::present;
  }

private:
  Pool& p_;

  void add(Fact::Strength s, const char* name, const std::vector<Kind>& kinds, E l, E r,
           const std::vector<E>& premises) {
    Fact f{name, s, kinds, {}, l.id, r.id, Fact::simplifier};
    for (E e : premises) f.premises.push_back(e.id);
    out.push_back(std::move(f));
  }
};

constexpr Kind R = Kind::real, F = Kind::finite, I = Kind::index, B = Kind::boolean, P = Kind::partial;

void ring(Table& t) {
  auto x = [&](int n) { return t.x(n); };
  auto i = [&](int n) { return t.i(n); };
  auto c = [&](double v) { return t.c(v); };
  t.exact("add_comm", {R, R}, x(0) + x(1), x(1) + x(0));
  t.algebraic("add_assoc", {R, R, R}, x(0) + (x(1) + x(2)), (x(0) + x(1)) + x(2));
  t.exact("add_zero", {R}, x(0) + c(0), x(0));
  t.algebraic("like_terms", {R}, c(2) * x(0) + c(3) * x(0), c(5) * x(0));
  t.algebraic("like_terms_one", {R}, x(0) + x(0), c(2) * x(0));
  t.algebraic("sub_self", {R}, x(0) - x(0), c(0));
  t.exact("mul_comm", {R, R}, x(0) * x(1), x(1) * x(0));
  t.algebraic("mul_assoc", {R, R, R}, x(0) * (x(1) * x(2)), (x(0) * x(1)) * x(2));
  t.exact("mul_one", {R}, c(1) * x(0), x(0));
  t.algebraic("mul_zero", {R}, c(0) * x(0), c(0));
  t.exact("mul_minus_one", {R}, c(-1) * x(0), -x(0));
  t.exact("neg_neg", {R}, -(-x(0)), x(0));
  t.exact("neg_sum", {R, R}, -(x(0) + x(1)), -x(0) + -x(1));
  t.exact("neg_product", {R, R}, -(x(0) * x(1)), -x(0) * x(1));
  t.algebraic("distribute_literal", {R, R}, c(3) * (x(0) + x(1)), c(3) * x(0) + c(3) * x(1));
  // `finite`: leaves are taken for numbers, and a factor that may be infinite besides is not distributed.
  t.algebraic("distribute", {F, R, R}, x(0) * (x(1) + x(2)), x(0) * x(1) + x(0) * x(2));
  t.algebraic("distribute_both", {F, F, F, F}, (x(0) + x(1)) * (x(2) + x(3)),
              (x(0) * x(2) + x(0) * x(3)) + (x(1) * x(2) + x(1) * x(3)));
  // Constants that are not finite: plus() and times().
  t.algebraic("ninf_add", {R}, c(-infinite) + x(0), c(-infinite));
  t.algebraic("inf_add", {R}, c(infinite) + x(0), c(infinite));
  t.exact("nan_add", {R}, c(std::nan("")) + x(0), c(std::nan("")));
  t.algebraic("ninf_mul_zero", {}, c(-infinite) * c(0), c(0));
  t.exact("ninf_mul_literal", {}, c(-infinite) * c(-2), c(infinite));
  t.algebraic("ninf_mul_exp2", {R}, c(-infinite) * exp2(x(0)), c(-infinite));
  t.algebraic("inf_mul_sum", {R}, c(infinite) * (exp2(x(0)) + c(1)), c(infinite));
  t.algebraic("inf_mul_product", {R, R}, c(infinite) * (exp2(x(0)) * exp2(x(1))), c(infinite));
  t.algebraic("ninf_mul_recip", {R}, c(-infinite) * recip(exp2(x(0)) + c(1)), c(-infinite));
  // Powers below 0: reciprocal().
  t.algebraic("recip_recip", {R}, recip(recip(x(0))), x(0));
  t.algebraic("recip_product", {R, R}, recip(x(0) * x(1)), recip(x(0)) * recip(x(1)));
  t.algebraic("recip_scaled", {R}, recip(c(4) * x(0)), c(0.25) * recip(x(0)));
  t.algebraic("recip_neg", {R}, recip(-x(0)), -recip(x(0)));
  t.algebraic("mul_recip_self", {R}, x(0) * recip(x(0)), c(1));
  t.algebraic("power_over_power", {R}, (x(0) * x(0)) * recip(x(0)), x(0));
  t.exact("recip_literal", {}, recip(c(8)), c(0.125));
  t.exact("recip_inf", {}, recip(c(infinite)), c(0));
  // Exponentials: joined() and exponential().
  t.algebraic("exp2_mul", {R, R}, exp2(x(0)) * exp2(x(1)), exp2(x(0) + x(1)));
  t.algebraic("exp2_square", {R}, exp2(x(0)) * exp2(x(0)), exp2(c(2) * x(0)));
  t.algebraic("exp2_recip", {R}, recip(exp2(x(0))), exp2(-x(0)));
  t.algebraic("exp2_cancel", {R}, exp2(x(0)) * exp2(-x(0)), c(1));
  t.exact("exp2_zero", {}, exp2(c(0)), c(1));
  t.exact("exp2_ninf", {}, exp2(c(-infinite)), c(0));
  t.exact("exp2_inf", {}, exp2(c(infinite)), c(infinite));
  t.exact("exp2_nan", {}, exp2(c(std::nan(""))), c(std::nan("")));
  // Integers: the ring alone, without recip; wrap-around is the ring's too (modulo 2^64).
  t.exact("index_add_comm", {I, I}, i(0) + i(1), i(1) + i(0));
  t.exact("index_add_assoc", {I, I, I}, i(0) + (i(1) + i(2)), (i(0) + i(1)) + i(2));
  t.exact("index_like_terms", {I}, t.whole(2) * i(0) + i(0), t.whole(3) * i(0));
  t.exact("index_sub_self", {I}, i(0) - i(0), t.whole(0));
  t.exact("index_mul_comm", {I, I}, i(0) * i(1), i(1) * i(0));
  t.exact("index_mul_assoc", {I, I, I}, i(0) * (i(1) * i(2)), (i(0) * i(1)) * i(2));
  t.exact("index_mul_zero", {I}, t.whole(0) * i(0), t.whole(0));
  t.exact("index_distribute", {I, I, I}, i(0) * (i(1) + i(2)), i(0) * i(1) + i(0) * i(2));
  t.exact("index_neg", {I}, t.whole(-1) * i(0), -i(0));
}

void extremes(Table& t) {
  auto x = [&](int n) { return t.x(n); };
  auto c = [&](double v) { return t.c(v); };
  const std::vector<E> below{x(0) < x(1)};
  t.exact("max_comm", {R, R}, max(x(0), x(1)), max(x(1), x(0)));
  t.exact("min_comm", {R, R}, min(x(0), x(1)), min(x(1), x(0)));
  t.exact("max_assoc", {R, R, R}, max(x(0), max(x(1), x(2))), max(max(x(0), x(1)), x(2)));
  t.exact("min_assoc", {R, R, R}, min(x(0), min(x(1), x(2))), min(min(x(0), x(1)), x(2)));
  t.exact("max_idem", {R}, max(x(0), x(0)), x(0));
  t.exact("min_idem", {R}, min(x(0), x(0)), x(0));
  t.exact("max_nested", {R, R}, max(x(0), max(x(0), x(1))), max(x(0), x(1)));
  t.exact("max_identity", {R}, max(c(-infinite), x(0)), x(0));
  t.exact("min_identity", {R}, min(c(infinite), x(0)), x(0));
  t.exact("max_nan", {R}, max(x(0), c(std::nan(""))), c(std::nan("")));
  t.exact("min_nan", {R}, min(x(0), c(std::nan(""))), c(std::nan("")));
  t.exact("max_literals", {R}, max(c(2), max(x(0), c(3))), max(x(0), c(3)));
  t.exact("min_literals", {R}, min(c(2), min(x(0), c(3))), min(x(0), c(2)));
  t.exact("max_index_literals", {I}, max(t.whole(2), max(t.i(0), t.whole(3))), max(t.i(0), t.whole(3)));
  t.exact("min_index_idem", {I}, min(t.i(0), t.i(0)), t.i(0));
  t.exact("max_ranked", {R, R}, max(x(0), x(1)), x(1), below);
  t.exact("min_ranked", {R, R}, min(x(0), x(1)), x(0), below);
}

void conditions(Table& t) {
  auto x = [&](int n) { return t.x(n); };
  auto b = [&](int n) { return t.b(n); };
  const std::vector<E> below{x(0) < x(1)};
  t.exact("decided_true", {B}, b(0), t.is(true), {b(0)});
  t.exact("decided_false", {B}, b(0), t.is(false), {!b(0)});
  t.exact("less_self", {R}, x(0) < x(0), t.is(false));
  t.exact("index_less_self", {I}, t.i(0) < t.i(0), t.is(false));
  t.exact("index_equal_self", {I}, t.i(0) == t.i(0), t.is(true));
  t.exact("boolean_equal_self", {B}, b(0) == b(0), t.is(true));
  t.exact("ranked_equal_self", {R, R}, x(0) == x(0), t.is(true), below);
  t.exact("ranked_less", {R, R}, x(0) < x(1), t.is(true), below);
  t.exact("ranked_not_less", {R, R}, x(1) < x(0), t.is(false), below);
  t.exact("ranked_not_equal", {R, R}, x(0) == x(1), t.is(false), below);
  t.exact("equal_comm", {R, R}, x(0) == x(1), x(1) == x(0));
  t.exact("boolean_equal_comm", {B, B}, b(0) == b(1), b(1) == b(0));
  t.exact("and_comm", {B, B}, b(0) && b(1), b(1) && b(0));
  t.exact("or_comm", {B, B}, b(0) || b(1), b(1) || b(0));
  t.exact("and_false", {B}, b(0) && t.is(false), t.is(false));
  t.exact("or_true", {B}, b(0) || t.is(true), t.is(true));
  t.exact("and_true", {B}, t.is(true) && b(0), b(0));
  t.exact("or_false", {B}, t.is(false) || b(0), b(0));
  t.exact("and_idem", {B}, b(0) && b(0), b(0));
  t.exact("or_idem", {B}, b(0) || b(0), b(0));
  t.exact("not_not", {B}, !!b(0), b(0));
  t.exact("select_true", {P, P}, select(t.is(true), x(0), x(1)), x(0));
  t.exact("select_false", {P, P}, select(t.is(false), x(0), x(1)), x(1));
  t.exact("select_same", {B, P}, select(b(0), x(1), x(1)), x(1));
  t.exact("only_true", {P}, only(t.is(true), x(0)), x(0));
}

void functions(Table& t) {
  auto x = [&](int n) { return t.x(n); };
  auto c = [&](double v) { return t.c(v); };
  t.algebraic("log2_exp2", {R}, log2(exp2(x(0))), x(0));
  t.algebraic("ratio_of_zero", {R}, ratio(c(0), x(0)), c(0));
  t.algebraic("ratio_by_literal", {R}, ratio(x(0), c(4)), c(0.25) * x(0));
  t.algebraic("ratio_by_third", {R}, ratio(x(0), c(3)), x(0) * recip(c(3)));
  t.algebraic("ratio_by_inf", {R}, ratio(x(0), c(infinite)), c(0));
  t.exact("literal_add", {}, c(0.5) + c(0.25), c(0.75));
  t.exact("literal_mul", {}, c(1.5) * c(-4), c(-6));
  t.exact("literal_max", {}, max(c(-2), c(0.5)), c(0.5));
  t.exact("literal_floor", {}, floor(c(5)), c(5));
  t.exact("literal_sqrt_negative", {}, sqrt(c(-1)), c(std::nan("")));
  t.exact("literal_log2_one", {}, log2(c(1)), c(0));
  t.exact("literal_log2_zero", {}, log2(c(0)), c(-infinite));
  t.exact("literal_is_nan", {}, is_nan(c(std::nan(""))), t.is(true));
  t.exact("literal_is_number", {}, is_nan(c(2)), t.is(false));
  t.exact("literal_less", {}, c(-infinite) < c(2), t.is(true));
  t.exact("literal_less_nan", {}, c(std::nan("")) < c(2), t.is(false));
  t.exact("literal_equal_nan", {}, c(std::nan("")) == c(std::nan("")), t.is(false));
  t.exact("literal_ratio_zero", {}, ratio(c(3), c(0)), c(0));
  t.exact("literal_ratio", {}, ratio(c(3), c(-4)), c(-0.75));
  t.exact("literal_not", {}, !t.is(true), t.is(false));
  t.exact("literal_and", {}, t.is(true) && t.is(false), t.is(false));
  t.exact("literal_real", {}, to_real(t.whole(-7)), c(-7));
  t.exact("literal_real_of_boolean", {}, to_real(t.is(true)), c(1));
  t.exact("literal_index_add", {}, t.whole(2) + t.whole(-5), t.whole(-3));
}

void absence(Table& t) {
  auto x = [&](int n) { return t.x(n); };
  auto b = [&](int n) { return t.b(n); };
  t.split("only_only", {B, B, P}, only(b(0), only(b(1), x(2))), only(b(0) && b(1), x(2)));
  t.split("only_strict", {B, P, P}, only(b(0), x(1)) + x(2), only(b(0), x(1) + x(2)));
  t.split("only_unary", {B, P}, exp2(only(b(0), x(1))), only(b(0), exp2(x(1))));
  t.split("only_both", {B, P, B, P}, only(b(0), x(1)) * only(b(2), x(3)), only(b(0) && b(2), x(1) * x(3)));
  t.split("only_condition", {B, B, P}, only(only(b(0), b(1)), x(2)), only(b(0) && b(1), x(2)));
  t.split("select_only", {B, B, P, B, P}, select(b(0), only(b(1), x(2)), only(b(3), x(4))),
          only(select(b(0), b(1), b(3)), select(b(0), x(2), x(4))));
  t.split("select_only_same", {B, B, P, P}, select(b(0), only(b(1), x(2)), only(b(1), x(3))),
          only(b(1), select(b(0), x(2), x(3))));
  t.split("select_only_condition", {B, B, P, P}, select(only(b(0), b(1)), x(2), x(3)),
          only(b(0), select(b(1), x(2), x(3))));
  t.split("or_else_present", {R, P}, or_else(x(0), x(1)), x(0));
  t.split("or_else_absent", {B, R, B, P}, or_else(only(b(0), x(1)), only(b(2), x(3))),
          only(b(0) || b(2), or_else(only(b(0), x(1)), x(3))));
}
} // namespace

std::vector<Fact> facts(Pool& p) {
  Table t(p);
  ring(t);
  extremes(t);
  conditions(t);
  functions(t);
  absence(t);
  return std::move(t.out);
}

Facts given(const Pool& p, const Fact& f) {
  Facts out;
  for (Id x : f.premises) {
    const Term& t = p[x];
    if (t.op == Op::less) {
      out.rank[t.args[0]] = 1;
      out.rank[t.args[1]] = 2;
    } else if (t.op == Op::flip) {
      out.truth[t.args[0]] = false;
    } else {
      out.truth[x] = true;
    }
  }
  return out;
}

} // namespace tang::expr
