// Random graphs of maps and folds, read transposed, shifted, padded, masked and gathered, through all rules.
#include "witness.hpp"

using namespace tang;
using namespace tang::test;

namespace {
struct Random {
  uint64_t state;
  uint64_t below(uint64_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
  }
};
constexpr int64_t N = 5;

// Every tensor is N x N or N, so that any axis may read any dimension.
struct Maker {
  Builder b;
  Random& r;
  std::vector<Tensor> square, line;
  Tensor table;
  Axis i = axis("i", N), j = axis("j", N), k = axis("k", N);

  explicit Maker(Random& random) : r(random) {
    for (const char* name : {"a", "b", "c"}) square.push_back(b.input(name, {N, N}));
    line.push_back(b.input("d", {N}));
    table = b.input("t", {N}, Format::i32);
  }
  Axis any(std::vector<Axis> from) { return from[r.below(from.size())]; }
  Guard bound(const std::vector<Axis>& over) {
    const Axis x = any(over), y = any(over);
    const int64_t c = int64_t(r.below(4)) - 1;
    return r.below(2) ? x <= Index(y) + Index(c) : Index(x) <= Index(c + 2);
  }
  Scalar read(const std::vector<Axis>& over) {
    const Axis x = any(over), y = any(over);
    if (r.below(4) == 0) return line[r.below(line.size())](x);
    const Tensor t = square[r.below(square.size())];
    switch (r.below(8)) {
      case 0: return t.at_or(double(r.below(3)) - 1, {Index(x) - 1, y});
      case 1: return t.at_or(r.below(2) ? 0.0 : -inf, {x, Index(y) + 1});
      case 2: return masked(bound(over), t(x, y));
      case 3: return t(table(x), y);
      case 4: return where(bound(over), t(x, y), r.below(2) ? 0.0 : -inf);
      default: return t(x, y);
    }
  }
  Scalar body(const std::vector<Axis>& over, int depth) {
    if (!depth) return read(over);
    const Scalar x = body(over, depth - 1);
    switch (r.below(9)) {
      case 0: return exp(min(x, Scalar(&b, b.surface_pool().literal(2.0))));
      case 1: return relu(x);
      case 2: return 0.5 * x;
      case 3: return tanh(x);
      case 4: return masked(bound(over), x);
      default: break;
    }
    const Scalar y = body(over, depth - 1);
    switch (r.below(5)) {
      case 0: return x + y;
      case 1: return x - y;
      case 2: return max(x, y);
      default: return x * y;
    }
  }
  Scalar folded(std::vector<Axis> points) {
    std::vector<Axis> all = points;
    all.push_back(k);
    const Scalar e = body(all, int(r.below(3)));
    switch (r.below(7)) {
      case 5: return sum(k, e) * sum(k, ir::square(e));  // siblings
      case 6: {
        const Scalar x = read(all), y = read(all);
        return sum(k, e * x - e * y);
      }
      case 0: return max(k, e + 0.0 * to_real(iota(k)));
      case 1: {  // a softmax over k, of whatever it is
        const Scalar s = e + 0.0 * to_real(iota(k)), w = exp(s - max(k, s));
        return ratio(sum(k, w * read(all)), sum(k, w));
      }
      default: return sum(k, e);
    }
  }
  Graph make() {
    const int steps = 3 + int(r.below(5));
    for (int s = 0; s < steps; ++s) {
      const bool wide = r.below(3) > 0;
      const std::vector<Axis> points = wide ? std::vector<Axis>{i, j} : std::vector<Axis>{i};
      const Scalar e = r.below(2) ? body(points, 1 + int(r.below(2))) : folded(points);
      const Tensor t = map(points, e, "n" + std::to_string(s));
      (wide ? square : line).push_back(t);
      if (s + 1 == steps || r.below(6) == 0) b.output(t, "out" + std::to_string(s));
    }
    return b.graph();
  }
};
}  // namespace

TEST(random, twelve_hundred_graphs_refine_in_every_order) {
  Random r{11};
  std::map<std::string, int> rules;
  for (int round = 0; round < 1200; ++round) {
    Graph g;
    {
      Maker m(r);
      g = m.make();
    }
    Feed f;
    for (const char* name : {"a", "b", "c"}) f[name] = filled({N, N}, [&](int64_t) { return double(int64_t(r.below(401)) - 200) / 100; });
    f["d"] = filled({N}, [&](int64_t) { return double(int64_t(r.below(401)) - 200) / 100; });
    std::vector<int64_t> t;
    for (int64_t k = 0; k < N; ++k) t.push_back(int64_t(r.below(N)));
    f["t"] = ids(t);
    rewrite::Optimized o;
    ASSERT_NO_THROW(o = rewrite::optimize(g)) << "round " << round;
    for (auto& s : o.trace.steps) ++rules[s.rule];
    validate(o.graph);
    const auto want = eval::run(g, f);
    for (auto& order : orders()) {
      eval::Options opt;
      opt.order = order;
      const auto got = eval::run(o.graph, f, opt);
      for (auto& [name, a] : want)
        ASSERT_EQ(unequal(a, got.at(name)), "") << "round " << round << " " << name << " order " << int(order.kind) << "\n" << rewrite::explain(o.trace);
    }
    Feed cut_feed = f;
    const Graph cut = stored(rewrite::expose_support(g), cut_feed);
    const auto trusted = eval::run(cut, cut_feed);
    for (auto& [name, a] : want) ASSERT_EQ(unequal(a, trusted.at(name)), "") << "round " << round << " " << name << ", maps stored";
    ASSERT_TRUE(rewrite::optimize(o.graph).trace.steps.empty()) << "round " << round << ": a second run changed it\n" << rewrite::explain(rewrite::optimize(o.graph).trace);
  }
  // Else the test shows little.
  for (const char* rule : {"fuse", "guard_to_absence", "hoist", "stabilize_softmax", "merge_siblings", "factor", "drop_copies"})
    EXPECT_GT(rules[rule], 5) << rule;
}
