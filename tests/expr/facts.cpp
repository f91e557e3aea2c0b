// The table of facts against the simplifier: each is performed, and none that is not exact below a
// comparison.
#include "tang/expr/facts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"

using namespace tang;
using namespace tang::expr;

namespace {
struct Both {
  Id left, right;
};

Both simplified(Pool& p, const Fact& f, bool exact) {
  const Facts known = given(p, f);
  const Id left = simplify(p, f.left, known, exact);
  const Id right = simplify(p, f.right, known, exact);
  return {left, right};
}

bool is_nan(const Pool& p, Id id) { return p[id].op == Op::literal && std::isnan(p[id].r); }
} // namespace

TEST(facts, names_are_distinct) {
  Pool p;
  std::set<std::string> names;
  for (auto& f : facts(p)) EXPECT_TRUE(names.insert(f.name).second) << f.name;
  EXPECT_GE(names.size(), 100u);
}

TEST(facts, the_simplifier_performs_each) {
  Pool p;
  for (auto& f : facts(p)) {
    if (f.by != Fact::simplifier) continue;
    EXPECT_NE(f.left, f.right) << f.name << " says nothing";
    const Both s = simplified(p, f, false);
    if (is_nan(p, s.left) && is_nan(p, s.right)) continue; // NaNs have many bits
    EXPECT_EQ(s.left, s.right) << f.name << ": " << p.print(f.left) << " became " << p.print(s.left)
                               << ", not " << p.print(s.right);
  }
}

TEST(facts, the_split_into_existence_and_value_performs_each) {
  Pool p;
  for (auto& f : facts(p)) {
    if (f.by != Fact::present) continue;
    const Present left = present(p, f.left), right = present(p, f.right);
    EXPECT_EQ(simplify(p, left.when), simplify(p, right.when))
        << f.name << ": " << p.print(left.when) << " and " << p.print(right.when);
    EXPECT_EQ(left.value, right.value)
        << f.name << ": " << p.print(left.value) << " and " << p.print(right.value);
  }
}

TEST(facts, exact_mode_performs_no_algebraic_fact) {
  Pool p;
  for (auto& f : facts(p)) {
    const Both s = simplified(p, f, true);
    if (f.strength == Fact::algebraic) EXPECT_NE(s.left, s.right) << f.name << " is not exact";
  }
}

TEST(facts, an_infinite_factor_is_not_distributed) {
  Pool p;
  auto x = [&](int n) { return E{&p, p.leaf(Op::var, Type::real, n)}; };
  const E zero = log2(x(0)), low = select(x(0) < lit(p, 0), lit(p, -HUGE_VAL), x(0));
  for (E f : {zero, low}) {
    // At f = -inf: -inf (2 - 1) is -inf, and -inf 2 + -inf (-1) is NaN.
    EXPECT_NE(simplify(p, (f * (x(1) + x(2))).id), simplify(p, (f * x(1) + f * x(2)).id));
    EXPECT_EQ(simplify(p, (3.0 * (f + x(2))).id), simplify(p, (3.0 * f + 3.0 * x(2)).id));
  }
}

TEST(facts, each_refines_on_numbers_infinities_and_nan) {
  // The same meaning as the op table's, on a grid: equal, or the left side was NaN.
  Pool p;
  const double values[] = {0, 1, -1, 0.5, 3, -2.25, HUGE_VAL, -HUGE_VAL, std::nan("")};
  for (auto& f : facts(p)) {
    const size_t n = f.kinds.size();
    std::vector<size_t> at(n, 0);
    int seen = 0;
    for (bool more = true; more;) {
      auto leaf = [&](const Term& t) -> Value {
        const size_t k = at[size_t(t.whole)];
        if (t.type == Type::boolean) return truth(k % 2);
        if (t.type == Type::index) return whole(int64_t(k) - 4);
        return real(values[k]);
      };
      bool inside = true;
      for (size_t k = 0; k < n; ++k) {
        if (f.kinds[k] == Kind::finite) inside &= std::isfinite(values[at[k]]);
        if (f.kinds[k] == Kind::boolean) inside &= at[k] < 2;
      }
      for (Id x : f.premises) inside &= evaluate(p, x, leaf).i == 1;
      if (inside) {
        const Value a = evaluate(p, f.left, leaf), b = evaluate(p, f.right, leaf);
        ++seen;
        EXPECT_EQ(a.state, b.state) << f.name;
        if (a.state == State::present && a.type == Type::real) {
          // IEEE's 1/0 is an infinity; the laws say NaN there, so those points are left out.
          bool pole = false;
          for (Id side : {f.left, f.right})
            for (Id x : subterms(p, side, Op::recip)) pole |= evaluate(p, p[x].args[0], leaf).r == 0;
          const bool nan = std::isnan(a.r) && (f.strength == Fact::algebraic || std::isnan(b.r));
          EXPECT_TRUE(pole || nan || a.r == b.r || std::fabs(a.r - b.r) <= 1e-12 * std::fabs(a.r))
              << f.name << ": " << a.r << " became " << b.r << " in " << p.print(f.left);
        } else if (a.state == State::present) {
          EXPECT_EQ(a.i, b.i) << f.name;
        }
      }
      more = false;
      for (size_t k = 0; k < n && !more; ++k) {
        more = ++at[k] < std::size(values);
        if (!more) at[k] = 0;
      }
    }
    EXPECT_GT(seen, 0) << f.name;
  }
}

// Each level uses the level below twice: expanding it once a use would take 2^60 steps.
TEST(simplify, shared_terms_are_expanded_once) {
  Pool p;
  Id x = p.leaf(Op::arg, Type::real, 0), y = p.leaf(Op::arg, Type::real, 1);
  for (int k = 0; k < 60; ++k) {
    const Id next = p.make(Op::mul, {p.make(Op::add, {x, y}), p.literal(0.5)});
    y = x;
    x = next;
  }
  simplify(p, x);
}

// Bounds of errors are terms a hundred thousand operations deep: no walk over one may take a frame of the stack a level.
TEST(terms, walks_over_deep_terms_need_no_deep_stack) {
  Pool p;
  const Id start = p.leaf(Op::arg, Type::real, 0), other = p.leaf(Op::arg, Type::real, 1);
  constexpr int deep = 400000;
  Id x = start, y = other;
  for (int k = 0; k < deep; ++k) {
    x = p.make(Op::sqrt, {x});
    y = p.make(Op::sqrt, {y});
  }
  EXPECT_EQ(schedule(p, {x}).size(), size_t(deep) + 1);
  EXPECT_EQ(subterms(p, x, Op::arg), std::set<Id>{start});
  EXPECT_EQ(substitute(p, x, {{start, other}}), y);
  EXPECT_EQ(present(p, x).value, x);
}
