// Printed terms: exact numbers, sharing, what has no row; and that every table prints.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/expr/facts.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/prove/export.hpp"
#include "tang/prove/rule.hpp"
#include "tang/prove/term.hpp"

using namespace tang;
using namespace tang::prove;

TEST(terms, doubles_print_exactly) {
  Terms t;
  const std::pair<double, const char*> cases[] = {{-3, "(lit (-3) 0)"},
                                                  {0.5, "(lit 1 (-1))"},
                                                  {0, "(lit 0 0)"},
                                                  {-0.0, "(lit 0 0)"},
                                                  {6, "(lit 6 0)"},
                                                  {HUGE_VAL, "inf"},
                                                  {-HUGE_VAL, "ninf"},
                                                  {std::nan(""), "nan"},
                                                  {0.1, "(lit 3602879701896397 (-55))"},
                                                  {-0x1p-1074, "(lit (-1) (-1074))"},
                                                  {0x1p52, "(lit 4503599627370496 0)"}};
  for (auto& [v, text] : cases) EXPECT_EQ(t.text(t.real(v)), text);
  // Any double is mantissa * 2^exponent, bit for bit.
  for (double v : {0x1p60, 1e300, 3.14159, -7e-310, 9007199254740993.0}) {
    long long m = 0;
    int e = 0;
    const std::string s = t.text(t.real(v));
    ASSERT_EQ(std::sscanf(s.c_str(),
                          v < 0                               ? "(lit (%lld) (%d))"
                          : s.find("(-") != std::string::npos ? "(lit %lld (%d))"
                                                              : "(lit %lld %d)",
                          &m, &e),
              2)
        << s;
    EXPECT_EQ(std::ldexp(double(m), e), v) << s;
  }
  EXPECT_EQ(t.text(t.integer(INT64_MAX)), "(lit 9223372036854775807 0)");
}

TEST(terms, shared_subterms_become_definitions) {
  expr::Pool p;
  const expr::E x{&p, p.leaf(expr::Op::var, expr::Type::real, 0)},
      y{&p, p.leaf(expr::Op::var, expr::Type::real, 1)};
  const expr::E big = exp2(x * y + sqrt(x)) * recip(y + 1.0);
  Terms t;
  const auto r = t.of(p, (big + big * x).id, [&](const expr::Term& leaf) { return t.variable(leaf.whole); });
  ASSERT_TRUE(r);
  const auto text = t.text({*r}, "s");
  EXPECT_EQ(text.definitions, "Definition s_0 : term := (mul (exp2_ (add (mul (v 0) (v 1)) (sqrt_ (v 0)))) "
                              "(recip (add (v 1) (lit 1 0)))).\n");
  EXPECT_EQ(text.terms[0], "(add s_0 (mul s_0 (v 0)))");
}

TEST(terms, bits_have_no_row) {
  expr::Pool p;
  const expr::E i{&p, p.leaf(expr::Op::var, expr::Type::index, 0)};
  Terms t;
  auto leaf = [&](const expr::Term& x) { return t.variable(x.whole); };
  EXPECT_FALSE(t.of(p, apply(expr::Op::shift_left, i, i).id, leaf));
  EXPECT_FALSE(t.of(p, to_bits(i).id, leaf));
  EXPECT_FALSE(t.of(p, to_index(i < i).id, leaf));
  EXPECT_TRUE(t.of(p, (i % i).id, leaf));
}

TEST(terms, absent_axes_are_seen) {
  Terms t;
  const Ref a = t.axis(0), b = t.axis(1);
  EXPECT_TRUE(t.looks_at(t.read(3, {a}), 0));
  EXPECT_FALSE(t.looks_at(t.read(3, {a}), 1));
  EXPECT_FALSE(t.looks_at(t.make("or_else_", {a, b}), 0));
  EXPECT_FALSE(t.looks_at(t.make("select", {t.truth(true), a, b}), 0));
  EXPECT_TRUE(t.looks_at(t.make("select", {t.truth(true), a, a}), 0));
  EXPECT_TRUE(t.looks_at(t.make("only_", {t.truth(true), a}), 0));
}

TEST(tables, every_monoid_and_every_fact_prints) {
  const Exported e = exported({});
  EXPECT_EQ(e.monoids, int(ir::all_monoids().size() + ir::more_proved_monoids().size()));
  expr::Pool p;
  EXPECT_EQ(e.rules, int(expr::facts(p).size()));
  EXPECT_TRUE(e.refused.empty());
}

TEST(tables, kinds_come_from_identities_and_shapes) {
  const auto welford = monoid_file(ir::welford(), "w"), softmax = monoid_file(ir::online_softmax(2), "s"),
             top = monoid_file(ir::topk(2), "t"), least = monoid_file(ir::argmin(), "l");
  ASSERT_TRUE(welford && softmax && top && least);
  EXPECT_NE(welford->text.find("[count; finite; finite]"), std::string::npos);
  EXPECT_NE(softmax->text.find("[bottom; finite; finite] [ninf; (lit 0 0); (lit 0 0)]"), std::string::npos);
  EXPECT_NE(top->text.find("t = (best_row true 2)"), std::string::npos);
  EXPECT_NE(least->text.find("l = (best_row false 1)"), std::string::npos);
}

TEST(fusions, a_gather_and_a_guard) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {6, 5}), ids = b.input("ids", {4}, ir::Format::i32),
                   w = b.input("w", {5});
  const auto [i, j] = ir::axes<"i j">();
  const ir::Axis r = ir::axis("r");
  const ir::Tensor scaled = ir::map({i, j}, masked(j <= i, x(i, j) * w(j)), "scaled");
  b.output(ir::map({r, j}, ir::or_else(scaled(ids(r), j), 0.0)), "y");
  const Fusions f = fusions_of({{"gather", b.graph()}});
  ASSERT_EQ(f.steps, 1);
  ASSERT_EQ(f.files.size(), 1u);
  EXPECT_TRUE(f.refused.empty());
  const std::string& text = f.files[0].text;
  EXPECT_NE(text.find("(only_ (not_ (less_ (add (ax 0) (mul (lit (-1) 0) (ax 1))) (lit 0 0)))"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("(rd 0 [(rd 1 [(ax 0)]); (ax 1)])"), std::string::npos) << text;
  EXPECT_NE(text.find("fused [1] ["), std::string::npos) << text;
}

TEST(fusions, a_dropped_bound_has_a_certificate) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {12});
  const auto [i] = ir::axes<"i">();
  const ir::Axis r = ir::axis("r", 5), q = ir::axis("q", 5);
  const ir::Tensor late = ir::map({i}, masked(i >= 2, x(i) * 2.0), "late");
  b.output(ir::map({r}, late(r + 3) + 1.0), "always");           // i - 2 >= 0 at i = r + 3: r + 1 >= 0, r is
  b.output(ir::map({q}, ir::or_else(late(4 - q), 0.0)), "some"); // at i = 4 - q: 2 - q >= 0, kept
  const Fusions f = fusions_of({{"late", b.graph()}});
  ASSERT_EQ(f.files.size(), 1u);
  EXPECT_EQ(f.files[0].theorems, 2);
  EXPECT_EQ(f.dropped, 1);
  EXPECT_TRUE(f.refused.empty());
  EXPECT_NE(f.files[0].text.find("fused [] [(ax 0)] [Drop (add (ax 0) (lit 1 0)) true [(0%nat, 1%Z)]]"),
            std::string::npos)
      << f.files[0].text;
  EXPECT_NE(f.files[0].text.find("fused [] [] []"), std::string::npos) << f.files[0].text;
}

TEST(eliminations, the_max_of_a_softmax) {
  ir::Builder b;
  const ir::Tensor s = b.input("s", {4, 6});
  const auto [i, j] = ir::axes<"i j">();
  const ir::Scalar weight = exp(s(i, j) - max(j, s(i, j)));
  b.output(ir::map({i, j}, ratio(weight, sum(j, weight))), "p");
  const auto g = gradient_of({"softmax", b.graph()});
  ASSERT_TRUE(g) << g.why();
  ASSERT_EQ(g->proofs.size(), 1u);
  const Eliminations e = eliminations_of({*g});
  ASSERT_TRUE(e.refused.empty()) << e.refused[0];
  ASSERT_EQ(e.files.size(), 1u);
  const std::string& text = e.files[0].text;
  EXPECT_NE(text.find("Theorem softmax_grad_0_ok : elimination 1 softmax_grad_0 ["), std::string::npos) << text;
  EXPECT_NE(text.find("(Neg (Read 0 [axis 0]))"), std::string::npos) << text;
}
