// One property test for every rule there is: it fires on its witness, is idempotent, cites a law, and refines; and the
// rules that guess nothing are tried on thousands of random graphs.
#include <algorithm>
#include <array>
#include <set>

#include "witness.hpp"

using namespace tang;
using namespace tang::test;
using rewrite::Law;
using rewrite::Rule;

namespace {
struct Random {
  uint64_t state;
  uint64_t below(uint64_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
  }
};
std::vector<Rule> every_rule() {
  std::vector<Rule> all = rewrite::normal_rules();
  for (auto& r : rewrite::directed_rules()) all.push_back(r);
  return all;
}
// Values for every input of a graph; `wild` adds infinities and NaN.
Feed feed_for(const Graph& g, Random& r, bool wild) {
  const double odd[] = {inf, -inf, nan_, 0, -0.0, 1, -1};
  Feed f;
  for (auto& n : g.nodes) {
    if (!n.input()) continue;
    Array a(eval::bound(n.input()->shape), type_of(n.input()->format));
    for (int64_t k = 0; k < a.size(); ++k) {
      if (a.type == Type::real)
        a.r[size_t(k)] = wild && r.below(4) == 0 ? odd[r.below(7)] : double(int64_t(r.below(2001)) - 1000) / 250;
      else
        a.i[size_t(k)] = int64_t(r.below(4)) - 1;
    }
    if (n.input()->sorted) std::sort(a.i.begin(), a.i.end()); // one row
    f[n.name] = a;
  }
  return f;
}
}  // namespace

TEST(laws, every_rule_has_a_name_of_its_own_and_a_law) {
  std::set<std::string> names;
  for (auto& r : every_rule()) {
    EXPECT_TRUE(names.insert(r.name).second) << r.name;
    EXPECT_FALSE(r.law.statement.empty()) << r.name;
    EXPECT_FALSE(r.law.theorem.empty()) << r.name;
  }
}
TEST(laws, every_rule_fires_on_its_witness_and_normal_rules_are_idempotent) {
  for (auto& r : every_rule()) {
    const Graph g = r.witness();
    validate(g);
    auto once = r.apply(g);
    ASSERT_TRUE(bool(once)) << r.name << ": " << once.why();
    validate(once->graph);
    EXPECT_FALSE(once->what.empty()) << r.name;
    EXPECT_NE(ir::hash(canonical(once->graph).graph), ir::hash(g)) << r.name;
    if (r.directed) continue;
    auto twice = r.apply(once->graph);
    EXPECT_FALSE(bool(twice)) << r.name << " fired again: " << (twice ? twice->what[0] : "");
  }
}
TEST(laws, every_rule_refines_its_witness) {
  Random r{7};
  for (auto& rule : every_rule()) {
    const Graph g = rule.witness();
    auto out = rule.apply(g);
    ASSERT_TRUE(bool(out)) << rule.name;
    const bool exact = rule.law.strength == Law::exact;
    for (int round = 0; round < 40; ++round) {
      const Feed f = feed_for(g, r, exact && round % 2);
      auto want = eval::run(g, f);
      for (auto& order : orders()) {
        if (exact && round % 2 && order.kind != FoldOrder::sequential) continue;  // at inf an order decides what is NaN
        eval::Options o;
        o.order = order;
        auto got = eval::run(out->graph, f, o);
        for (auto& [name, a] : want) EXPECT_EQ(unequal(a, got.at(name), exact && order.kind == FoldOrder::sequential), "") << rule.name << " " << name;
      }
    }
  }
}
TEST(laws, the_order_of_outputs_and_of_building_does_not_change_the_result) {
  auto build = [](bool turned) {
    Builder b;
    auto x = b.input("x", {6, 8}), w = b.input("w", {8, 5});
    auto [i, k, n] = axes<"i k n">();
    auto y = map({i, n}, sum(k, x(i, k) * w(k, n)), "y"), z = map({i}, sum(k, square(x(i, k))), "z");
    if (turned) {
      b.output(z, "z");
      b.output(y, "y");
    } else {
      b.output(y, "y");
      b.output(z, "z");
    }
    return b.graph();
  };
  auto a = rewrite::optimize(build(false)), c = rewrite::optimize(build(true));
  auto count = [](const rewrite::Optimized& o) { return std::pair(kernels(o.graph), o.trace.steps.size()); };
  EXPECT_EQ(count(a), count(c));
  EXPECT_EQ(ir::hash(rewrite::optimize(build(false)).graph), ir::hash(a.graph));
}

// Random lifts over guarded reads: whatever the law decides must be a refinement for all values.
TEST(laws, guard_to_absence_on_2000_random_lifts) {
  Random r{1};
  const Rule rule = rewrite::guard_to_absence();
  const double pads[] = {0, -inf, inf, 1, -1}, values[] = {0, 1, -1, 2, 0.5, inf, -inf, nan_, -3};
  int fired = 0;
  for (int round = 0; round < 2000; ++round) {
    Builder b;
    auto i = axis("i", 4), z = axis("z", 1);
    Tensor t[3] = {b.input("a", {4}), b.input("b", {4}), b.input("c", {4})};
    auto constant = [&](double v) { return Scalar(&b, b.surface_pool().literal(v)); };
    std::function<Scalar(int)> grow = [&](int depth) -> Scalar {
      const uint64_t k = depth ? r.below(14) : r.below(4);
      if (k == 0) return t[0].at_or(pads[r.below(5)], {Index(i) - 1});
      if (k == 1) return t[1].at_or(pads[r.below(5)], {Index(i) + 1});
      if (k == 2) return t[2](i);
      if (k == 3) return constant(pads[r.below(5)]);
      const Scalar x = grow(depth - 1);
      if (k == 4) return exp(x);
      if (k == 5) return tanh(x);
      const Scalar y = grow(depth - 1);
      if (k < 8) return x + y;
      if (k < 11) return x * y;
      if (k == 11) return max(x, y);
      if (k == 12) return min(x, y);
      const Scalar w = grow(depth - 1);
      return select(x < y, w, y);
    };
    const MonoidSpec* specs[] = {&sum_of_reals(), &max_of_reals(), &min_of_reals()};
    const MonoidSpec& m = *specs[r.below(3)];
    const Scalar lift = grow(4);
    b.output(map({z}, fold(m, i, {lift + 0.0 * to_real(iota(i))})[0] + 0.0 * to_real(iota(z))), "y");
    const Graph g = b.graph();
    auto out = rule.apply(g);
    if (!out) continue;
    ++fired;
    for (int data = 0; data < 8; ++data) {
      Feed f;
      for (const char* name : {"a", "b", "c"}) f[name] = filled({4}, [&](int64_t) { return values[r.below(9)]; });
      const std::string d = unequal(eval::run(g, f).at("y"), eval::run(out->graph, f).at("y"));
      ASSERT_EQ(d, "") << m.name << " round " << round;
    }
  }
  EXPECT_GT(fired, 60);  // else the test shows nothing
}
// Random masks, score changes and data over attention, through all rules, in three orders.
TEST(laws, optimize_on_400_random_masked_attentions) {
  Random r{3};
  int online = 0;
  for (int round = 0; round < 400; ++round) {
    Head h(4, 5, 2, 2);
    auto bound = [&] {
      const int64_t ci = int64_t(r.below(3)) - 1, cj = r.below(2) ? 1 : -1, c = int64_t(r.below(5)) - 2;
      return ci * Index(h.i) + cj * Index(h.j) + Index(c) >= Index(0);
    };
    Guard g = bound();
    for (uint64_t k = r.below(3); k--;) {
      const Guard next = bound();
      g = r.below(2) ? (g || next) : (g && next);
    }
    Scalar s = h.dot();
    if (r.below(2)) s = 2.0 * tanh(s);
    if (r.below(2)) s = s + to_real(iota(Index(h.j) - Index(h.i)));
    s = r.below(2) ? masked(g, s) : where(g, s, -inf);
    if (r.below(3) == 0) s = 2.0 * s;
    const Graph naive = r.below(2) ? h.softmax(s) : h.stored_softmax(s);
    const double odd[] = {nan_, inf, -inf, 0};
    for (const char* name : {"q", "k", "v"})
      if (r.below(3) == 0) h.feed[name].r[r.below(h.feed[name].r.size())] = odd[r.below(4)];
    auto o = rewrite::optimize(naive);
    online += fired(o, "stabilize_softmax");
    auto want = eval::run(naive, h.feed).at("out");
    for (auto& order : orders()) {
      eval::Options opt;
      opt.order = order;
      ASSERT_EQ(unequal(want, eval::run(o.graph, h.feed, opt).at("out")), "") << "round " << round << " order " << int(order.kind) << "\n" << rewrite::explain(o.trace);
    }
  }
  EXPECT_EQ(online, 400);
}
