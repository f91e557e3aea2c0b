// Groups, roles and flush: the backward of attention written by hand, and what a schedule may ask for.
#include "plan/graphs.hpp"

using namespace tang;
using namespace tang::test;
using plan::Flush;
using plan::Role;

namespace {
// The three folds of attention's backward, given the row statistics: one evaluation of each score serves all.
Graph backward(int64_t n, int64_t m, int64_t d, int64_t c_) {
  Builder b;
  Tensor q = b.input("q", {n, d}), k = b.input("k", {m, d}), v = b.input("v", {m, c_}),
         dout = b.input("do", {n, c_});
  Tensor lse = b.input("lse", {n}), delta = b.input("delta", {n});
  auto [i, j, x, c] = axes<"i j x c">();
  Scalar s = sum(x, q(i, x) * k(j, x)), dp = sum(c, dout(i, c) * v(j, c));
  const Guard seen = Index(j) <= Index(i) + Index(m - n);
  Scalar p = masked(seen, exp(0.1 * (s - lse(i))));
  Scalar ds = p * (dp - delta(i));
  auto [y, z] = axes<"y z">();
  b.output(map({i, y}, sum(j, ds * k(j, y)), "dq"), "dq");
  b.output(map({j, y}, sum(i, ds * q(i, y)), "dk"), "dk");
  b.output(map({j, z}, sum(i, p * dout(i, z)), "dv"), "dv");
  return b.graph();
}
} // namespace

TEST(groups, backward_of_attention_is_one_group) {
  const Plan p = verified(optimized(backward(33, 40, 5, 3)));
  int with_members = 0;
  for (auto& s : p.steps)
    if (s.group.members.size() == 3) {
      ++with_members;
      EXPECT_EQ(s.group.shared.size(), 2u);
      int accumulated = 0;
      for (auto& m : s.group.members) accumulated += m.flush == Flush::accumulate;
      EXPECT_EQ(accumulated, 1); // dq: 165 words; dk and dv would be 320
    }
  EXPECT_EQ(with_members, 1) << plan::print(p);
  EXPECT_LE(largest_buffer(p), 200);
}

TEST(groups, a_stored_member_or_a_role_turns_the_grid) {
  const Graph g = optimized(backward(33, 40, 5, 3));
  const Plan free = plan::make_plan(g, {});
  NodeId accumulated = 0;
  const plan::Group* group = nullptr;
  for (auto& s : free.steps)
    for (auto& m : s.group.members)
      if (m.flush == Flush::accumulate) accumulated = m.node, group = &s.group;
  ASSERT_TRUE(group);
  const std::string name = g[accumulated].name;
  Schedule other;
  for (size_t k = 0; k < 2; ++k)
    other.groups[name].role[int(k)] = group->role[k] == Role::grid ? Role::looped : Role::grid;
  const Plan turned = verified(g, {}, other);
  int sums = 0;
  for (auto& s : turned.steps)
    for (auto& m : s.group.members) sums += m.flush == Flush::accumulate;
  EXPECT_EQ(sums, 2) << plan::print(turned); // dk and dv instead of dq
}

TEST(groups, folding_a_grid_axis_that_is_no_sum_is_refused) {
  Builder b;
  Tensor x = b.input("x", {6, 9});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, max(j, x(i, j)), "m"), "m");
  Schedule s;
  s.groups["max"].role[1] = Role::grid;
  const Plan p = verified(b.graph(), {}, s);
  ASSERT_EQ(p.notes.size(), 1u) << plan::print(p);
  EXPECT_NE(p.notes[0].find("refused"), std::string::npos);
}

TEST(groups, a_lone_sum_may_be_accumulated_or_added_in_order) {
  Builder b;
  Tensor x = b.input("x", {6, 9});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, x(i, j)), "s"), "s");
  Schedule grid, order;
  grid.groups["sum"].role[1] = Role::grid;
  order.groups["sum"].role[0] = Role::looped;
  const Plan a = verified(b.graph(), {}, grid), o = verified(b.graph(), {}, order);
  EXPECT_EQ(a.steps[0].group.members[0].flush, Flush::accumulate);
  EXPECT_EQ(o.steps[0].group.members[0].flush, Flush::ordered);
  EXPECT_EQ(a.steps.size(), 2u); // the copy into the output cannot be its epilogue
}

TEST(groups, a_member_that_depends_on_a_member_starts_a_new_group) {
  Builder b; // without the online form: the sum needs the max
  Tensor q = b.input("q", {20, 3}), k = b.input("k", {22, 3});
  auto [i, j, d] = axes<"i j d">();
  Scalar s = sum(d, q(i, d) * k(j, d));
  b.output(map({i}, sum(j, exp(s - max(j, s))), "l"), "l");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.steps.size(), 2u) << plan::print(p);
  for (auto& x : p.steps) EXPECT_EQ(x.group.shared.size(), 1u);
}

TEST(groups, cycles_between_groups_are_not_made) {
  Builder b; // A = {a1, a2} and B = {b1, b2} with a1 -> b1 and b2 -> a2 would wait for each other
  Tensor q = b.input("q", {20, 3}), k = b.input("k", {22, 3}), r = b.input("r", {20, 3}),
         t = b.input("t", {22, 3});
  auto [i, j, d] = axes<"i j d">();
  Scalar s = sum(d, q(i, d) * k(j, d)), u = sum(d, r(i, d) * t(j, d));
  Tensor a1 = map({i}, sum(j, tanh(s)), "a1"), b2 = map({i}, sum(j, tanh(u)), "b2");
  b.output(map({i}, sum(j, u * a1(i)), "b1"), "b1");
  b.output(map({i}, sum(j, s * b2(i)), "a2"), "a2");
  verified(b.graph());
  verified(optimized(b.graph()));
}

TEST(groups, a_subterm_read_at_two_places_is_stored) {
  Builder b;
  Tensor q = b.input("q", {20, 3});
  auto [i, j, d] = axes<"i j d">();
  Tensor s = map({i, j}, sum(d, q(i, d) * q(j, d)), "s");
  b.output(map({i}, sum(j, exp(s(i, j)) * tanh(s(j, i)))), "y");
  verified(b.graph());
  const Plan p = verified(optimized(b.graph()));
  EXPECT_EQ(largest_buffer(p), 400) << plan::print(p);
}

TEST(groups, a_short_contraction_named_as_stored_is_a_buffer) {
  Builder b;
  Tensor x = b.input("x", {33, 5}), w1 = b.param("w1", {40, 5}), w2 = b.param("w2", {3, 40});
  auto [t, e, f, o] = axes<"t e f o">();
  Scalar h = sum(e, x(t, e) * w1(f, e));
  b.output(map({t, o}, sum(f, tanh(h) * w2(o, f)), "y"), "y");
  Schedule s;
  s.groups["sum"].stored = true;
  EXPECT_EQ(verified(b.graph(), {}, s).steps.size(), 2u);
  s.groups.clear();
  s.short_contraction = 4;
  EXPECT_EQ(verified(b.graph(), {}, s).steps.size(), 2u);
}

// Short contractions of rows of q and k.
struct Scores {
  Builder b;
  Tensor q = b.input("q", {20, 3}), k = b.input("k", {20, 3}), r = b.input("r", {20, 3}),
         t = b.input("t", {20, 3});

  Scalar s(const Axis& i, const Axis& j) {
    auto [d] = axes<"d">();
    return sum(d, q(i, d) * k(j, d));
  }

  Scalar u(const Axis& i, const Axis& j) {
    auto [d] = axes<"d">();
    return sum(d, r(i, d) * t(j, d));
  }
};

TEST(groups, reads_that_disagree_on_the_axes_do_not_share_a_group) {
  for (bool transposed : {false, true}) {
    Scores x;
    auto [i, k, j] = axes<"i k j">();
    Tensor s = map({i, j}, x.s(i, j)), u = map({i, j}, x.u(i, j));
    x.b.output(map({i}, sum(j, tanh(s(i, j) * u(i, j))), "a"), "a");
    if (transposed)
      x.b.output(map({i}, sum(j, tanh(s(i, j) + u(j, i))), "b"), "b");
    else
      x.b.output(map({i, k}, sum(j, tanh(s(i, j) + u(k, j))), "b"), "b");
    const Plan p =
        verified(optimized(x.b.graph())); // the copies are gone: both read the same two contractions
    size_t contractions = 0;
    for (NodeId id = 0; id < p.graph->nodes.size(); ++id)
      contractions +=
          (*p.graph)[id].comp() && p.graph->shape({id, 0}).size() == 2 && (*p.graph)[id].comp()->monoid;
    EXPECT_EQ(contractions, transposed ? 2u : 3u); // b itself is a matrix when it keeps k
    // Transposed: two groups, each aligned in its own way. Else one of the two contractions is stored.
    for (auto& step : p.steps) {
      if (transposed) { EXPECT_EQ(step.group.members.size(), 1u) << plan::print(p); }
      if (!transposed) { EXPECT_LE(step.group.shared.size(), 1u) << plan::print(p); }
    }
  }
}

TEST(groups, a_component_without_a_core_axis_is_not_repeated_by_workgroups) {
  Scores x;
  Tensor v = x.b.input("v", {20, 4});
  auto [i, j, c] = axes<"i j c">();
  const MonoidSpec two{"two sums",
                       {expr::real(0), expr::real(0)},
                       [](Pool&, const std::vector<expr::E>& a, const std::vector<expr::E>& b) {
                         return std::vector<expr::E>{a[0] + b[0], a[1] + b[1]};
                       }};
  auto s = fold(two, j, {tanh(x.s(i, j)), v(j, c)});
  x.b.output(map({i}, s[0]), "rows");
  x.b.output(map({c}, s[1]), "columns");
  const Plan p = verified(x.b.graph());
  EXPECT_EQ(largest_buffer(p), 400) << plan::print(p);
}

TEST(groups, a_subterm_that_belongs_to_many_tiles_is_stored) {
  Scores x;
  auto [i, j, e] = axes<"i j e">();
  Scalar weight = sum(e, x.q(j, e) * x.r(j, e)); // [keys]: each row of tiles would evaluate it again
  x.b.output(map({i}, sum(j, x.s(i, j) * weight), "y"), "y");
  const Plan p = verified(x.b.graph());
  EXPECT_EQ(p.steps.size(), 2u) << plan::print(p);
}

TEST(groups, what_is_cheaper_stored_is_stored_when_two_read_it) {
  Builder b;
  Tensor q = b.input("q", {4, 100}), k = b.input("k", {4, 100});
  auto [i, j, d] = axes<"i j d">();
  Scalar s = sum(d, q(i, d) * k(j, d)); // 16 values of 800 words
  b.output(map({i}, sum(j, tanh(s)), "rows"), "rows");
  b.output(map({j}, sum(i, exp(s)), "columns"), "columns");
  const Plan p = verified(b.graph());
  EXPECT_EQ(p.steps.size(), 3u) << plan::print(p);
  EXPECT_EQ(largest_buffer(p), 16);
}
