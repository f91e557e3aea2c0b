// Recurrences in segments: the states of a segment are computed again for its adjoint, so that fewer are remembered.
#include "grad/check.hpp"
#include "run/harness.hpp"
#include "tang/grad/surface.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
// `all`: the loss is of every state, not of the last alone.
Graph gru_gradient(int64_t steps, int64_t batch, int64_t hidden, int64_t segment, bool reverse = false, bool all = true) {
  Builder b;
  Tensor x = b.input("x", {steps, batch, 5}), h = b.input("h0", {batch, hidden});
  Gru p;
  p.cell = {b.param("w", {3 * hidden, 5}), b.param("u", {3 * hidden, hidden}), b.param("bias", {3 * hidden}), {}};
  const Sequence s = gru(x, h, p, reverse);
  auto [t, n, u] = axes<"t n u">();
  Scalar of = sum({n, u}, s.last(n, u));
  if (all) of = of + sum({t, n, u}, square(s.all(t, n, u)) * to_real(iota(t)));
  const Tensor loss = map(std::vector<Axis>{}, of, "loss");
  const std::vector<Tensor> by{x, h, p.cell.w, p.cell.u, p.cell.bias};
  const auto d = diff::grad(loss, by, Where::here(), nullptr, {.segment = segment});
  b.output(loss, "loss");
  for (size_t k = 0; k < by.size(); ++k) b.output(d[k], "d" + by[k].name());
  return b.graph();
}

int64_t planned_bytes(const Graph& g) {
  const run::Derivation d = run::derive(g, {});
  int64_t bytes = d.plan.arena_bytes;
  for (int64_t n : d.kernels.temporaries) bytes += n;
  return bytes;
}
} // namespace

TEST(grad_segments, gradients_are_bit_equal) {
  for (bool reverse : {false, true}) {
    const Graph whole = gru_gradient(12, 2, 4, 0, reverse);
    const Inputs in = inputs_of(whole);
    const auto want = eval::run(whole, in);
    for (int64_t segment : {1, 3, 4, 5, 6, 7, 11}) { // also such as leave steps over
      const Graph g = gru_gradient(12, 2, 4, segment, reverse);
      const auto got = eval::run(g, in);
      for (auto& [name, a] : want)
        for (int64_t k = 0; k < a.size(); ++k) {
          const double gap = std::fabs(a.at(k).r - got.at(name).at(k).r);
          // Sums over time are split by segment; all else is the same arithmetic.
          ASSERT_LE(gap, (name[0] == 'd' && name != "dx" && name != "dh0" ? 1e-14 : 0) * std::max(1.0, std::fabs(a.at(k).r))) << name << " at " << k << ", segments of " << segment;
        }
    }
  }
}

// 1024 steps of 8 x 32 numbers: all of them, or those between segments of 32 and the 32 of one segment.
TEST(grad_segments, fewer_states_are_remembered) {
  const int64_t all = planned_bytes(gru_gradient(1024, 8, 32, 0, false, false)),
                some = planned_bytes(gru_gradient(1024, 8, 32, 32, false, false));
  RecordProperty("bytes", std::to_string(all) + " -> " + std::to_string(some));
  std::printf("planned bytes %lld -> %lld\n", static_cast<long long>(all), static_cast<long long>(some));
  EXPECT_GT(all, 1024 * 8 * 32 * 4);
  EXPECT_LT(some, all / 2);
}

TEST(grad_segments, kernels_of_the_c_target_are_right) {
  for (auto [steps, reverse] : {std::pair{12, false}, {12, true}, {14, false}, {14, true}}) {
    const Graph g = gru_gradient(steps, 2, 7, 4, reverse);
    run::Options o;
    o.guards = true;
    run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(2), o);
    const auto report = verify::verify(p, g, inputs_of(g), 1e-5, 2);
    for (auto& c : report.kernels)
      EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): error " << c.error << ". " << c.why;
    for (auto& c : report.outputs) EXPECT_TRUE(c.ok) << c.what << " error " << c.error;
    EXPECT_TRUE(report.trespass.empty());
  }
}

// A recurrence that reads the first rows of an array sends gradients to those: elsewhere they are 0, not absent, whatever
// is added to them.
TEST(grad_segments, what_steps_emit_to_a_part_of_an_array_is_zero_elsewhere) {
  for (int64_t first : {0, 2}) {
    Builder b;
    const Tensor x = b.input("x", {7, 2}), none = b.input("none", {2});
    const Axis t = axis("t", Extent(4)), i = axis("i", Extent(7)), u = axis("u", Extent(2));
    const Recurred r = recur(t, {carried("s", none)}, [&](const std::vector<Tensor>& old) -> Step {
      return {{map({u}, old[0](u) + square(x.at({Index(t) + first, u})))}, {}};
    });
    const Tensor loss = map(std::vector<Axis>{}, sum(u, r.states[0](u)) + sum({i, u}, square(x(i, u))), "loss");
    b.output(diff::grad(loss, {x})[0], "dx");
    const Graph g = b.graph();
    const Inputs in = inputs_of(g);
    Inputs got;
    got["as written"] = eval::run(g, in).at("dx");
    got["rewritten"] = eval::run(rewrite::optimize(g).graph, in).at("dx");
    run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(1), {});
    verify::feed(p, g, in);
    p.poison_scratch();
    p.run();
    for (int64_t k = 0; k < 14; ++k) {
      const double want = (k / 2 >= first && k / 2 < first + 4 ? 4 : 2) * in.at("x").r[size_t(k)];
      for (auto& [how, a] : got) {
        EXPECT_EQ(a.at(k).state, expr::State::present) << how << ", row " << k / 2;
        EXPECT_NEAR(a.at(k).r, want, 1e-12) << how << ", row " << k / 2;
      }
      EXPECT_NEAR(p.data<float>("dx")[k], want, 1e-6) << "row " << k / 2;
    }
  }
}

TEST(grad_segments, what_cannot_be_cut_is_refused) {
  auto why = [](int64_t steps, int64_t segment) -> std::string {
    try {
      gru_gradient(steps, 1, 2, segment);
    } catch (const Error& e) { return e.what(); }
    return "";
  };
  EXPECT_EQ(why(10, 4), "");
  EXPECT_EQ(why(10, 20), "");
  Builder b;
  Tensor x = b.input("x", {4});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) * 2), "y");
  const Graph g = b.graph();
  EXPECT_FALSE(rewrite::strip_mine(g, g.outputs[0].port.node, 2));
}
