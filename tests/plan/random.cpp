// Random small graphs: whatever the planner decides, the machine must find every buffer equal to the oracle's
// value.
#include <random>

#include "plan/graphs.hpp"

using namespace tang;
using namespace tang::test;

namespace {
struct Maker {
  std::mt19937 random;
  Builder b = {};
  std::vector<Tensor> have = {};
  int names = 0;

  int pick(int n) { return int(random() % unsigned(n)); }

  Tensor any() { return have[size_t(pick(int(have.size())))]; }

  Tensor input() {
    const int64_t r = 4 + pick(3), c = 4 + pick(3);
    const std::string name = "in" + std::to_string(names++);
    return pick(3) == 0 ? b.state(name, {r, c}) : b.input(name, {r, c});
  }

  // A tensor with this many rows or columns, made if there is none.
  Tensor with(int dim, const Extent& e) {
    std::vector<Tensor> fit;
    for (auto& t : have)
      if (t.shape()[size_t(dim)] == e) fit.push_back(t);
    if (!fit.empty() && pick(4)) return fit[size_t(pick(int(fit.size())))];
    const std::string name = "in" + std::to_string(names++);
    const Extent other = 4 + pick(3);
    return b.input(name, dim == 0 ? std::vector<Extent>{e, other} : std::vector<Extent>{other, e});
  }

  Scalar bend(const Scalar& s) {
    switch (pick(4)) {
    case 0: return tanh(s);
    case 1: return s * 0.5;
    case 2: return sigmoid(s) + 0.25;
    default: return s;
    }
  }

  Scalar cut(const Scalar& s, const Axis& i, const Axis& j) {
    switch (pick(4)) {
    case 0: return masked(Index(j) <= Index(i), s);
    case 1: return masked(Index(j) >= Index(i) - Index(1), s);
    default: return s;
    }
  }

  Tensor made() {
    auto [i, j, k, l] = axes<"i j k l">();
    Tensor x = any();
    switch (pick(7)) {
    case 0: { // a contraction of two, perhaps folded again by a third without being stored
      Tensor y = with(1, x.shape()[1]);
      Scalar dot = bend(sum(k, x(i, k) * y(j, k)));
      if (pick(3) == 0) return map({i, j}, dot);
      Tensor z = with(0, y.shape()[0]);
      if (pick(2)) return map({i, l}, bend(sum(j, cut(dot, i, j) * z(j, l))));
      auto s = fold(online_softmax(2), j, {cut(dot, i, j), 1.0, z(j, l)});
      return map({i, l}, ratio(s[2], s[1]));
    }
    case 1: { // the same score folded both ways
      Tensor y = with(1, x.shape()[1]);
      Scalar dot = tanh(sum(k, x(i, k) * y(j, k)));
      Tensor rows = map({i, l}, sum(j, dot * y(j, l)));
      have.push_back(map({j, l}, sum(i, dot * x(i, l))));
      return rows;
    }
    case 2: { // a row statistic and what is made of it
      Scalar m = max(j, x(i, j)), s = sum(j, x(i, j) * x(i, j));
      return map({i, j}, (x(i, j) - m) / sqrt(s + 1.0));
    }
    case 3: return map({j, i}, bend(x(i, j)));
    case 4: {
      const Axis r = axis("r", x.shape()[0]);
      return map({r, j}, x.at_or(0.0, {Index(r) - Index(1), Index(j)}) + x(r, j));
    }
    case 5: {
      Tensor y = with(0, x.shape()[0]);
      return map({i, j}, bend(x(i, j)) * max(k, y(i, k)));
    }
    default: {
      auto best = fold(argmax(), j, {x(i, j), iota(j)});
      return map({i, l}, x(i, l) * 0.5 + x(i, best[1]));
    }
    }
  }

  Graph graph() {
    have = {input(), input()};
    const int n = 3 + pick(4);
    for (int k = 0; k < n; ++k) have.push_back(made());
    int outputs = 0;
    for (size_t k = have.size(); k-- > 2;)
      if (k + 1 == have.size() || pick(3) == 0) b.output(have[k], "out" + std::to_string(outputs++));
    return b.graph();
  }
};
} // namespace

TEST(random, graphs_by_tiles) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph g = Maker{std::mt19937(seed)}.graph();
    const eval::Inputs in = filled(g);
    verify(plan::make_plan(g, {}), in, {3, 64});
    verify(plan::make_plan(g, schedule::as_written()), in, {4});
    Schedule scarce; // every value that can be is computed again
    scarce.memory = 1;
    verify(plan::make_plan(g, scarce), in, {3});
    scarce = schedule::as_written();
    scarce.memory = 1;
    verify(plan::make_plan(g, scarce), in, {4});
    const Graph o = optimized(g);
    Graph reversed = o;
    std::reverse(reversed.outputs.begin(), reversed.outputs.end());
    EXPECT_EQ(groups_of(plan::make_plan(o, {})), groups_of(plan::make_plan(canonical(reversed).graph, {})));
    verify(plan::make_plan(o, {}), in, {2, 5});
    compiled(g, in, {3});
    if (testing::Test::HasFailure()) break;
  }
}

TEST(random, roles_that_a_schedule_asks_for) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph g = Maker{std::mt19937(seed + 1000)}.graph();
    std::mt19937 random(seed);
    Schedule s;
    for (NodeId id = 0; id < g.nodes.size(); ++id) {
      if (!g[id].comp() || g[id].name.empty()) continue;
      for (int k = 0; k < 3; ++k)
        if (random() % 3 == 0)
          s.groups[g[id].name].role[k] = random() % 2 ? plan::Role::grid : plan::Role::looped;
      if (random() % 4 == 0) s.groups[g[id].name].stored = true;
    }
    s.short_contraction = random() % 2 ? 5 : 256;
    verify(plan::make_plan(g, s), filled(g), {3});
    if (testing::Test::HasFailure()) break;
  }
}
