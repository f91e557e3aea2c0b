// The floor of a whole graph, on a machine of round numbers.
#include "tang/tune/step_floor.hpp"

#include <fstream>
#include <sstream>

#include "tang/text/text.hpp"
#include "tune/graphs.hpp"

namespace {
using namespace tang;

// Four workers of 64 KiB, 10 GB/s each; 1 MiB that all share, 1 us away; 100 GB/s of memory; 1 Tflop/s.
tune::Machine four_workers() {
  tune::Machine m;
  m.device = "made up", m.workers = 4, m.lanes = 32, m.margin = 1;
  m.fma = {1e12, 1e12}, m.ingress = 10e9;
  m.levels = {{"L1", 256 << 10, {1e12, 1e12}, false},
              {"L2", 1 << 20, {500e9, 500e9}, true, 1e-6},
              {"memory", 0, {100e9, 100e9}, true, 2e-6}};
  return m;
}

tune::StepFloor of(const ir::Graph& g, bool cold = false) {
  return tune::step_floor(*run::derive(g, {}).plan.graph, four_workers(), {}, cold);
}

double term(const tune::StepFloor& f, const std::string& name) {
  for (auto& t : f.time.terms)
    if (t.name == name) return t.seconds;
  return -1;
}

// y = w[n] relu(.. relu(w[0] x)): `layers` products of one row by matrices of size x size.
ir::Graph layers(int n, int64_t size) {
  ir::Builder g;
  Tensor h = g.input("x", {size});
  for (int l = 0; l < n; ++l) {
    Tensor w = g.input("w" + std::to_string(l), {size, size});
    auto [i, k] = axes<"i k">();
    h = map({i}, relu(sum(k, w(i, k) * h(k))));
  }
  g.output(h, "y");
  return g.graph();
}
} // namespace

TEST(tune_step_floor, bytes_less_what_the_chip_holds_and_arithmetic) {
  const auto warm = of(layers(2, 2048)), cold = of(layers(2, 2048), true);
  const double bytes = 2 * 2048.0 * 2048 * 4 + 2048 * 4; // each weight once, and x
  EXPECT_NEAR(term(cold, "bytes from memory"), bytes / 100e9, 1e-12);
  EXPECT_NEAR(term(warm, "bytes from memory"), (bytes - (1 << 20)) / 100e9, 1e-12); // L1 is not kept
  EXPECT_NEAR(term(warm, "arithmetic"), 2 * 2 * 2048.0 * 2048 / 1e12, 1e-12);
  EXPECT_EQ(warm.time.seconds, term(warm, "bytes from memory"));
}
// Every element of a layer needs all of the one before it, whose weights one worker alone would read for 1.6 ms.
TEST(tune_step_floor, exchanges_are_counted_along_the_longest_path) {
  for (int n : {1, 2, 5}) {
    const auto f = of(layers(n, 2048));
    EXPECT_EQ(f.exchanges, n - 1);
    EXPECT_NEAR(term(f, "exchanges"), (n - 1) * 1e-6, 1e-12);
  }
}
// A worker that holds all weights of a layer makes the layer by itself, sooner than anyone could tell it.
TEST(tune_step_floor, what_one_worker_makes_by_itself_is_no_exchange) {
  EXPECT_EQ(of(layers(5, 16)).exchanges, 0);
  tune::Machine m = four_workers();
  m.workers = 1;
  EXPECT_EQ(tune::step_floor(*run::derive(layers(5, 2048), {}).plan.graph, m).exchanges, 0);
  m = four_workers(), m.levels[1].latency = 0; // not probed
  EXPECT_EQ(tune::step_floor(*run::derive(layers(5, 2048), {}).plan.graph, m).exchanges, 0);
}
// Rows that depend on their own row only can each stay with one worker.
TEST(tune_step_floor, rows_that_do_not_meet_need_no_exchange) {
  const auto f = of(tests::two_layers(4096, 512, 512));
  EXPECT_EQ(f.exchanges, 0);
  EXPECT_NEAR(term(f, "arithmetic"), 2 * 2 * 4096.0 * 512 * 512 / 1e12, 1e-9);
  // .. and so can those of a mask, where no point needs all.
  EXPECT_EQ(of(text::parse("input w[i: 2048, j: 2048] : f32\ninput x[k: 2048] : f32\n"
                           "h[i] = sum[k] w[i,k] * x[k]\ny[i] = sum[j] (w[i,j] * h[j] if j <= i)\noutput y\n",
                           "masked.tang"))
                .exchanges,
            0);
}
TEST(tune_step_floor, masked_terms_do_not_count) {
  ir::Builder b;
  Tensor x = b.input("x", {512, 512}), v = b.input("v", {512});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, masked(j <= i, x(i, j) * v(j)))), "y");
  const auto f = of(b.graph(), true);
  EXPECT_NEAR(term(f, "arithmetic"), 512.0 * 513 / 1e12, 1e-15);
  EXPECT_NEAR(term(f, "bytes from memory"), (512.0 * 513 / 2 * 4 + 512 * 4) / 100e9, 1e-15);
}
// The constants of the page of an H200: of a deep chain of small layers exchanges are most of the floor.
TEST(tune_step_floor, a_deep_chain_on_the_probed_gpu) {
  std::ifstream in(std::string(TANG_SOURCE) + "/docs/results/tune-h200/probe.json");
  std::ostringstream text;
  text << in.rdbuf();
  const auto m = tune::machine_of(text.str());
  ASSERT_TRUE(bool(m)) << m.why();
  const auto f = tune::step_floor(*run::derive(layers(20, 512), {}).plan.graph, *m);
  EXPECT_EQ(f.exchanges, 19);
  EXPECT_EQ(f.time.binding().name, "exchanges"); // 20 MiB of weights stay in the second level
  EXPECT_GT(f.time.seconds, 19 * 0.1e-6);
  EXPECT_LT(f.time.seconds, 19 * 1e-6);
}
