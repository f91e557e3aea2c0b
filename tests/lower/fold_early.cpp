// What a row reads of the arguments beside its folds, and how many lanes share a short row.
#include "lower/pipeline.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/surface.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/kernel/rows.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
// The log-sum-exp of each row less its entry at `label`.
Graph labelled(int64_t m, int64_t n) {
  Builder b;
  Tensor x = b.input("x", {m, n}, Format::bf16), label = b.input("label", {m}, Format::i64);
  auto [i, j] = axes<"i j">();
  const Scalar most = max(j, x(i, j));
  b.output(map({i}, most + log(sum(j, exp(x(i, j) - most))) - x(i, label(i))), "y");
  return b.graph();
}

bool reads(const kernel::Apply& a, const kernel::Kernel& k, const std::string& stem) {
  return std::any_of(a.body.refs.begin(), a.body.refs.end(),
                     [&](auto& r) { return k.memories[size_t(r.memory)].name.rfind(stem, 0) == 0; });
}
} // namespace

TEST(fold_early, a_rows_own_entry_is_read_before_its_folds) {
  const target::Target t = target::cuda_target();
  for (auto [m, n] : {std::pair<int64_t, int64_t>{300, 64}, {40, 576}, {3, 4100}, {2, 20003}}) {
    const Graph g = labelled(m, n);
    eval::Inputs in{{"x", random_array({m, n}, 3)}};
    for (double& v : in["x"].r) v = expr::rounded(v, Format::bf16);
    std::vector<int64_t> label;
    for (int64_t i = 0; i < m; ++i) label.push_back(i * 37 % n);
    in["label"] = eval::indices({m}, label);
    Derived d = derive(g, {}, t);
    ASSERT_EQ(d.program.kernels.size(), 1u);
    kernel::Kernel& k = d.program.kernels[0].kernel;
    k = kernel::legalize(k, t);
    size_t early = 0, folded = 0, used = 0;
    for (size_t s = 0; s < k.body.size(); ++s) {
      auto* a = std::get_if<kernel::Apply>(&k.body[s].node);
      if (a && k.memories[size_t(a->dst[0].memory)].name.rfind("early", 0) == 0) early = s + 1;
      if (a && reads(*a, k, "early")) used = s + 1;
      if (!folded && std::holds_alternative<kernel::Fold>(k.body[s].node)) folded = s + 1;
    }
    EXPECT_GT(early, 0u) << kernel::print(k);
    EXPECT_LT(early, folded);
    EXPECT_LT(folded, used);
    auto got = simulate(d, in);
    EXPECT_LT(eval::difference(got["y"], filled(eval::run(g, in).at("y"))), 2e-6) << m << " x " << n;
  }
}

TEST(fold_early, a_short_row_has_the_lanes_of_which_fewest_idle) {
  const target::Target t = target::cuda_target();
  auto team = [&](int64_t columns, bool stores) { return kernel::teams(columns, 1 << 16, 0, t, stores).team; };
  EXPECT_EQ(team(64, true), 8);
  EXPECT_EQ(team(64, false), 4); // two runs a lane: fewer results to join
  EXPECT_EQ(team(8, false), 1);
  EXPECT_EQ(team(72, true), 16); // nine runs: two for each of eight lanes would be as many
  EXPECT_EQ(team(72, false), 8);
  EXPECT_EQ(team(576, true), 16); // 72 runs: 5 x 16 places, not 3 x 32
  EXPECT_EQ(team(1024, true), 32);
  EXPECT_EQ(team(1000, true), 32);
  target::Target one = t;
  one.access_bytes = 1; // neighbouring lanes read neighbouring places
  EXPECT_EQ(kernel::teams(576, 1 << 16, 0, one, true).team, 32);
}
