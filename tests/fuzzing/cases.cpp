// Cases as functions of their choices, the judge, and what a finding writes.
#include <gtest/gtest.h>

#include <cmath>

#include "tang/fuzz/campaign.hpp"
#include "tang/fuzz/judge.hpp"
#include "tang/ir/surface.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::fuzz;

TEST(cases, the_choices_that_a_seed_drew_make_the_same_case_again) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Choices random(seed);
    const Case a = generate(random);
    Choices again(a.choices);
    const Case b = generate(again);
    ASSERT_EQ(ir::hash(a.graph), ir::hash(b.graph)) << seed;
    ASSERT_EQ(a.choices, b.choices) << seed;
    ASSERT_EQ(a.schedule, b.schedule) << seed;
    ir::validate(a.graph);
  }
}

// The largest f32 stands for infinity on a target of class finite, and only there; NaN is promised on none.
TEST(cases, infinities_are_judged_as_the_class_promises) {
  constexpr double inf = HUGE_VAL, most = 3.4028234663852886e38;
  Case c;
  ir::Builder b;
  const ir::Tensor x = b.input("x", {4});
  const ir::Axis i = ir::axis("i", ir::Extent(4));
  b.output(ir::map({i}, x(i) * 1.0), "y");
  c.graph = b.graph(), c.integer = true;
  c.inputs = {{"x", eval::reals({4}, {inf, -inf, std::nan(""), 7})}};
  const Reference r = reference(c);
  const run::Derivation d = run::derive(c.graph, {});
  auto faults = [&](std::vector<double> got, target::Class values) {
    Judged count;
    const auto out = judge(c, r, d, {{"y", eval::reals({4}, std::move(got))}}, count, values);
    EXPECT_EQ(count.open, out.empty() ? 1 : count.open);
    return out.size();
  };
  using target::Class;
  EXPECT_EQ(faults({inf, -inf, 0, 7}, Class::exact), 0u);
  EXPECT_EQ(faults({most, -most, 0, 7}, Class::exact), 1u);
  EXPECT_EQ(faults({most, -most, 0, 7}, Class::finite), 0u);
  EXPECT_EQ(faults({inf, -most, 3, 7}, Class::finite), 0u);
  EXPECT_EQ(faults({most, most, 0, 7}, Class::finite), 1u);
  EXPECT_EQ(faults({most, -1e37, 0, 7}, Class::finite), 1u);
  EXPECT_EQ(faults({most, -most, 0, 8}, Class::finite), 1u);
}

TEST(cases, no_choices_make_the_smallest_case) {
  Choices none((Sequence()));
  const Case c = generate(none);
  ir::validate(c.graph);
  EXPECT_LE(c.graph.nodes.size(), 6u);
  EXPECT_TRUE(c.schedule.groups.empty());
}

TEST(cases, what_a_finding_writes_is_a_graph_again) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Choices random(seed);
    const Case c = generate(random);
    const std::string file = repro(c, {seed, "c", "value", "a line", c.choices, ""});
    const Case back = case_of(file, "case.tang");
    EXPECT_EQ(ir::hash(back.graph), ir::hash(c.graph)) << file;
    EXPECT_EQ(back.schedule, c.schedule) << file;
    EXPECT_EQ(back.bindings, c.bindings) << file;
    EXPECT_TRUE(back.integer == c.integer && back.optimize == c.optimize && back.late == c.late &&
                back.lanes == c.lanes && back.fast_memory == c.fast_memory)
        << file;
    for (auto& [name, a] : c.inputs) EXPECT_TRUE(a.r == back.inputs.at(name).r && a.i == back.inputs.at(name).i);
    EXPECT_EQ(sequence(words(c.choices)), c.choices);
  }
}

// Bit equality is asked of integers only where the format of the output holds them.
TEST(cases, a_drawn_format_of_integers_holds_them_exactly) {
  int narrow = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Choices random(seed);
    const Case c = generate(random);
    if (!c.integer) continue;
    const Reference r = reference(c);
    for (auto& o : r.graph.outputs) {
      if (ir::type_of(o.format) != expr::Type::real) continue;
      narrow += ir::row(o.format).bits < 32;
      const eval::Array& a = r.outputs.at(o.name);
      for (int64_t k = 0; k < a.size(); ++k)
        if (a.at(k).state == expr::State::present && !std::isnan(a.r[size_t(k)])) {
          ASSERT_EQ(expr::rounded(a.r[size_t(k)], o.format), a.r[size_t(k)]) << seed << " " << o.name;
        }
    }
  }
  EXPECT_GT(narrow, 20);
}

// Without this a judge that accepts everything would pass every test.
TEST(cases, the_judge_sees_one_wrong_value) {
  int seen = 0, open = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Choices random(seed);
    const Case c = generate(random);
    const Reference r = reference(c);
    run::Options o;
    o.optimize = false;
    const run::Derivation d = run::derive(r.graph, o);
    Judged count;
    ASSERT_TRUE(judge(c, r, d, r.outputs, count).empty()) << seed;
    for (auto& [name, a] : r.outputs)
      for (int64_t k = 0; k < a.size(); ++k) {
        if (a.at(k).state != expr::State::present ||
            (a.type == expr::Type::real && !std::isfinite(a.r[size_t(k)])))
          continue;
        Outputs wrong = r.outputs;
        if (a.type == expr::Type::real)
          wrong[name].r[size_t(k)] += 0.02 * (1 + std::fabs(a.r[size_t(k)]));
        else
          wrong[name].i[size_t(k)] += 1;
        Judged one;
        const bool found = !judge(c, r, d, wrong, one).empty();
        ++(found ? seen : open);
        EXPECT_TRUE(found || one.open || c.integer == false) << seed << " " << name;
        k += a.size() / 3;
      }
  }
  EXPECT_GT(seen, 20 * open) << open << " of " << seen + open << " wrong values pass";
}
