// Narrow storage of activations and gradients with a scaled loss: the emulator predicts what overflows and what
// vanishes, the scale follows from it, and a step whose gradients overflow changes nothing.
#include "grad/training_step.hpp"
#include "tang/tune/scaling.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// A loss so small that most of its gradients lie below what f16 holds.
const CharacterStep small{.layers = 1, .batch = 2, .context = 8, .model = 16, .scaled = true, .loss_times = 1e-6};

run::Options narrow(const Graph& g, Format f) {
  run::Options o;
  o.schedule = tune::narrowed(run::derive(g, o), o.schedule, f);
  return o;
}

struct Running {
  Graph g;
  run::Program p;

  Running(const Graph& graph, const run::Options& o, const CharacterStep& z, double scale)
      : g(graph), p(g, shared_compiler(), std::make_shared<device::Cpu>(1), o) {
    Inputs in = first_inputs(g, z);
    if (z.scaled) in["loss.scale"].r[0] = scale;
    fill(p, g, in);
  }

  std::vector<double> losses(int steps) {
    std::vector<double> out;
    for (int k = 0; k < steps; ++k) {
      p.run();
      out.push_back(double(p.data<float>("loss")[0]));
    }
    return out;
  }

  std::vector<float> weights() {
    std::vector<float> out;
    for (auto& n : g.nodes)
      if (auto* x = n.input(); x && x->kind == ir::Input::state && n.name.starts_with("blocks."))
        out.insert(out.end(), p.data<float>(n.name), p.data<float>(n.name) + p.elements(n.name));
    return out;
  }
};
} // namespace

TEST(grad_scaling, the_emulator_predicts_the_scale) {
  const Graph g = character_step(small);
  const run::Options o = narrow(g, Format::f16);
  const run::Derivation d = run::derive(g, o);
  const tune::ScaleChoice s = tune::choose_scale(d, g, first_inputs(g, small));
  std::printf("scale 2^%g, bound by %s; vanish: %.3f, unscaled %.3f\n", std::log2(s.scale), s.binds.c_str(), s.vanished,
              s.vanished_unscaled);
  EXPECT_EQ(s.overflowed, 0);
  EXPECT_GT(s.vanished_unscaled, 0.2);
  EXPECT_LT(s.vanished, s.vanished_unscaled / 10);
  // It is the largest: 16 times as much leaves no headroom, and something overflows.
  Inputs more = first_inputs(g, small);
  more["loss.scale"].r[0] = 16 * s.scale;
  int64_t overflowed = 0;
  for (auto& r : tune::stored_ranges(d, g, more, true)) overflowed += r.overflowed;
  EXPECT_GT(overflowed, 0);
  // Storage with the exponents of f32 needs none.
  const run::Derivation wide = run::derive(g, narrow(g, Format::bf16));
  EXPECT_EQ(tune::choose_scale(wide, g, first_inputs(g, small)).overflowed, 0);
  EXPECT_LT(tune::choose_scale(wide, g, first_inputs(g, small)).vanished_unscaled, 1e-3);
}

TEST(grad_scaling, f16_trains_as_f32_does_with_the_scale_and_not_without) {
  const Graph g = character_step(small);
  const run::Options o = narrow(g, Format::f16);
  const tune::ScaleChoice s = tune::choose_scale(run::derive(g, o), g, first_inputs(g, small));
  const auto full = Running(g, {}, small, 1).losses(40), scaled = Running(g, o, small, s.scale).losses(40),
             unscaled = Running(g, o, small, 1).losses(40);
  std::printf("f32 %.4f -> %.4f, f16 scaled %.4f, f16 unscaled %.4f\n", full.front(), full.back(), scaled.back(),
              unscaled.back());
  EXPECT_LT(full.back(), 0.5 * full.front());
  EXPECT_NEAR(scaled.back(), full.back(), 0.02 * full.front());
  EXPECT_GT(unscaled.back(), 10 * full.back());
}

TEST(grad_scaling, a_step_that_overflows_changes_nothing_but_the_scale) {
  const Graph g = character_step(small);
  Running r(g, narrow(g, Format::f16), small, 0x1p60);
  const std::vector<float> before = r.weights();
  double scale = 0x1p60;
  int skipped = 0;
  while (r.p.data<int32_t>("step")[0] == 0) {
    ASSERT_LT(++skipped, 60);
    EXPECT_EQ(r.weights(), before);
    r.p.run();
    if (r.p.data<int32_t>("step")[0]) break;
    EXPECT_EQ(double(r.p.data<float>("loss.scale")[0]), scale /= 2);
    EXPECT_EQ(r.p.data<int32_t>("loss.good")[0], 0);
  }
  EXPECT_GT(skipped, 5);
  EXPECT_NE(r.weights(), before);
  for (float w : r.weights()) ASSERT_TRUE(std::isfinite(w));
  EXPECT_EQ(r.p.data<int32_t>("loss.good")[0], 1);
}

// The states of the scale as numbers, on the oracle: NaN and inf gradients, the halving, the doubling, its end.
TEST(grad_scaling, scale_and_count_as_defined) {
  Builder b;
  const Tensor w = b.state("w", {2}), x = b.input("x", {2});
  const Axis i = axis("i");
  models::Sgd o;
  o.rate.peak = 0.5;
  o.scaled = models::scaled(map(std::vector<Axis>{}, sum(i, w(i) * x(i))), 3, 64);
  models::sgd({w}, grad(o.scaled.loss, {w}), o);
  const Graph g = b.graph();
  auto step = [&](double first, double scale, int64_t good) {
    return eval::run(g, {{"w", eval::reals({2}, {1, 2})}, {"x", eval::reals({2}, {first, 4})}, {"step", eval::indices({}, {7})},
                         {"loss.scale", eval::reals({}, {scale})}, {"loss.good", eval::indices({}, {good})}});
  };
  auto out = step(3, 16, 0);
  EXPECT_EQ(out["w"].r, (std::vector<double>{1 - 0.5 * 3, 2 - 0.5 * 4}));
  EXPECT_EQ(out["step"].i[0], 8);
  EXPECT_EQ(out["loss.scale"].r[0], 16);
  EXPECT_EQ(out["loss.good"].i[0], 1);
  out = step(3, 16, 2); // the third good step
  EXPECT_EQ(out["loss.scale"].r[0], 32);
  EXPECT_EQ(out["loss.good"].i[0], 0);
  EXPECT_EQ(step(3, 64, 2)["loss.scale"].r[0], 64); // no more than 64
  for (double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    out = step(bad, 16, 2);
    EXPECT_EQ(out["w"].r, (std::vector<double>{1, 2}));
    EXPECT_EQ(out["step"].i[0], 7);
    EXPECT_EQ(out["loss.scale"].r[0], 8);
    EXPECT_EQ(out["loss.good"].i[0], 0);
  }
  EXPECT_EQ(step(HUGE_VAL, 1, 0)["loss.scale"].r[0], 1); // no less than 1
}
