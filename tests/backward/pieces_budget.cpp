// A budget of errors chooses in how many pieces 32-bit operands are taken, and the emulator knows what that does.
#include "lower/role_runs.hpp"
#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/run/budget.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;
using namespace tang::test;

namespace {
ir::Graph product(int64_t m, int64_t n, int64_t k) {
  ir::Builder b;
  ir::Tensor x = b.input("a", {m, k}), y = b.input("b", {n, k});
  auto [i, j, l] = ir::axes<"i j l">();
  b.output(ir::map({i, j}, ir::sum(l, x(i, l) * y(j, l))), "out");
  return b.graph();
}

ir::Graph attention(int64_t rows, int64_t d, bool gradients) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {1, 2, rows, d}), k = b.input("k", {1, 2, rows, d}), v = b.input("v", {1, 2, rows, d});
  models::AttentionOptions o;
  o.mask = models::causal();
  const auto a = models::attention(q, k, v, o);
  b.output(a.out, "out");
  if (!gradients) return b.graph();
  const auto g = diff::vjp(a.out, b.input("dout", a.out.shape()), {q, k, v});
  b.output(g[0], "dq"), b.output(g[1], "dk"), b.output(g[2], "dv");
  return b.graph();
}

run::Options hopper() {
  run::Options o = run::hopper_options();
  o.target = warpgroups_alone();
  return o;
}

int pieces(const run::Derivation& d) {
  int most = 0;
  for (auto& l : d.kernels.kernels) most = std::max(most, l.pieces);
  return most;
}

// What the simulator makes of the kernels, against the graph as written.
std::map<std::string, double> measured(const run::Derivation& d, const ir::Graph& g, const eval::Inputs& in) {
  const auto got = simulate({d.plan, d.kernels}, in);
  std::map<std::string, double> out;
  for (auto& [name, want] : eval::run(g, in)) out[name] = run::relative_error(got.at(name), filled(want));
  return out;
}
} // namespace

TEST(pieces_budget, the_bound_chooses_where_there_are_no_samples) {
  const ir::Graph g = product(128, 128, 256);
  run::Options o = hopper();
  EXPECT_EQ(pieces(run::derive(g, o)), 0);
  o.budget = run::ErrorBudget{};
  o.budget->all = 1e-4; // 3 2^-16 and a sum of 256 terms
  EXPECT_EQ(pieces(run::derive(g, o)), 2);
  o.budget->all = 3e-5;
  EXPECT_EQ(pieces(run::derive(g, o)), 3);
  o.budget->all = 1e-7;
  EXPECT_THROW(run::derive(g, o), Error);
  o.budget->all = 3e-5, o.schedule.pieces = 2; // a schedule that says so is held to the budget
  EXPECT_THROW(run::derive(g, o), Error);
}

TEST(pieces_budget, what_is_predicted_from_samples_chooses) {
  const ir::Graph g = attention(150, 64, true);
  run::Options o = hopper();
  o.budget = run::ErrorBudget{};
  o.budget->samples = rounded_inputs(g);
  o.budget->all = 1e-4;
  EXPECT_EQ(pieces(run::derive(g, o)), 2);
  o.budget->all = 2e-6;
  EXPECT_EQ(pieces(run::derive(g, o)), 3);
}

TEST(pieces_budget, the_emulator_predicts_what_the_kernels_do) {
  for (bool gradients : {false, true})
    for (int64_t d : {64, 128}) {
      const ir::Graph g = gradients ? attention(130, d, true) : attention(200, d, false);
      const eval::Inputs in = rounded_inputs(g);
      run::Options o = hopper();
      o.schedule.pieces = 2;
      const auto made = run::derive(g, o);
      ASSERT_EQ(pieces(made), 2);
      const auto predicted = run::predicted_errors(made, g, in);
      for (auto& [name, error] : measured(made, g, in)) {
        EXPECT_GT(error, 5e-7) << name; // more than f32 itself
        EXPECT_LT(error, 2 * predicted.at(name)) << name << " " << d;
        EXPECT_GT(error, predicted.at(name) / 2) << name << " " << d;
      }
    }
  const ir::Graph g = product(130, 70, 300);
  const eval::Inputs in = rounded_inputs(g);
  run::Options o = hopper();
  o.schedule.pieces = 2;
  const auto made = run::derive(g, o);
  const double error = measured(made, g, in).at("out"), predicted = run::predicted_errors(made, g, in).at("out");
  EXPECT_LT(error, 2 * predicted);
  EXPECT_GT(error, predicted / 2);
}

// Two groups that read the same arrays: their pieces are made once.
TEST(pieces_budget, pieces_of_an_array_are_made_once) {
  run::Options o = hopper();
  o.schedule.pieces = 2;
  const auto d = run::derive(attention(130, 64, true), o);
  std::set<std::vector<ir::Port>> cut;
  int kernels = 0;
  for (auto& l : d.kernels.kernels) {
    if (l.schedule != "in pieces") continue;
    std::vector<ir::Port> reads;
    for (auto& a : l.arguments)
      if (auto* p = std::get_if<ir::Port>(&a.what)) reads.push_back(*p);
    cut.insert(reads), ++kernels;
  }
  EXPECT_EQ(kernels, int(cut.size()));
  EXPECT_EQ(kernels, 4); // q, k, v, dout
}
