// Recurrences that are affine in their states, in chunks: the same values, gradients and kernels, and what is
// refused.
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
using Outputs = std::map<std::string, eval::Array>;

namespace {
struct Case {
  std::string name;
  std::function<Recurred(Builder&, int64_t)> make; // of so many steps
};

Recurring reversed() {
  Recurring how;
  how.reverse = true;
  return how;
}

// h' = a h + b with a factor for each feature: a scan.
Recurred scan(Builder& b, int64_t steps, const Recurring& how = {}) {
  const Tensor a = b.input("a", {steps, 5}), x = b.input("x", {steps, 5}), h0 = b.input("h0", {5});
  const Axis t = axis("t", steps), u = axis("u", 5);
  return recur(
      t, {carried("h", h0)},
      [&](const std::vector<Tensor>& old) -> Step {
        const Tensor next = map({u}, sigmoid(a(t, u)) * old[0](u) + x(t, u), "h");
        return {{next}, {next, map({u}, tanh(old[0](u)))}};
      },
      how);
}

// Linear attention whose state decays by one number a step; read before and after the step.
Recurred attention(Builder& b, int64_t steps, const Recurring& how = {}) {
  const Tensor q = b.input("q", {steps, 4}), k = b.input("k", {steps, 4}), v = b.input("v", {steps, 6});
  const Tensor gate = b.input("gate", {steps}), start = b.input("start", {4, 6});
  const Axis t = axis("t", steps), x = axis("x", 4), c = axis("c", 6);
  return recur(
      t, {carried("S", start)},
      [&](const std::vector<Tensor>& old) -> Step {
        const Tensor kept = map({x, c}, exp(gate(t)) * old[0](x, c), "kept");
        const Tensor next = map({x, c}, kept(x, c) + k(t, x) * v(t, c), "S");
        return {{next},
                {map({c}, sum(x, next(x, c) * q(t, x)), "out"),
                 map({c}, sum(x, kept(x, c) * k(t, x) + q(t, x)), "seen")}};
      },
      how);
}

// The factor of each row of the state is its own; a second state sums what the first gives, and a third that.
Recurred tower(Builder& b, int64_t steps) {
  const Tensor g = b.input("g", {steps, 8}), k = b.input("k", {steps, 8}), v = b.input("v", {steps, 16});
  const Axis t = axis("t", steps), x = axis("x", 8), c = axis("c", 16);
  return recur(t,
               {carried("third", std::vector<Extent>{16}), carried("S", {8, 16}),
                carried("second", std::vector<Extent>{16})},
               [&](const std::vector<Tensor>& old) -> Step {
                 const Tensor next = map({x, c}, sigmoid(g(t, x)) * old[1](x, c) + k(t, x) * v(t, c), "S");
                 const Tensor out = map({c}, sum(x, square(k(t, x)) * next(x, c)), "out");
                 const Tensor second = map({c}, 0.5 * old[2](c) + tanh(out(c)) * to_real(iota(t)), "second");
                 const Tensor third = map({c}, old[0](c) + second(c) * old[2](c), "third");
                 return {{third, next, second}, {out, third}};
               });
}

// The gated delta rule: a sum of the old state is fed back. `grouped`: the sum and what it is multiplied by
// change along the values, too, and so does the decay along the keys.
Recurred delta(Builder& b, int64_t steps) {
  const DeltaRule d =
      gated_delta_rule(b.input("q", {steps, 4}), b.input("k", {steps, 4}), b.input("v", {steps, 6}),
                       b.input("gate", {steps}), b.input("beta", {steps}), b.input("start", {4, 6}));
  return {{d.state}, {d.out}};
}

Recurred grouped(Builder& b, int64_t steps, const Recurring& how = {}) {
  const Tensor k = b.input("k", {steps, 3, 4}), w = b.input("w", {steps, 3, 4}),
               v = b.input("v", {steps, 3, 2});
  const Tensor gate = b.input("gate", {steps, 4}), start = b.input("start", {3, 4, 2});
  const Axis t = axis("t", steps), n = axis("n", 3), x = axis("x", 4), y = axis("y", 4), c = axis("c", 2);
  return recur(
      t, {carried("S", start)},
      [&](const std::vector<Tensor>& old) -> Step {
        const Tensor found = map({n, c}, sum(y, old[0](n, y, c) * k(t, n, y)) + v(t, n, c), "found");
        const Tensor next =
            map({n, x, c}, sigmoid(gate(t, x)) * old[0](n, x, c) - w(t, n, x) * found(n, c) * 0.5, "S");
        return {{next}, {found, map({n, c}, sum(x, next(n, x, c) * w(t, n, x)))}};
      },
      how);
}

const Case cases[] = {
    {"scan", [](Builder& b, int64_t n) { return scan(b, n); }},
    {"scan in reverse", [](Builder& b, int64_t n) { return scan(b, n, reversed()); }},
    {"attention", [](Builder& b, int64_t n) { return attention(b, n); }},
    {"attention in reverse", [](Builder& b, int64_t n) { return attention(b, n, reversed()); }},
    {"tower", tower},
    {"delta rule", delta},
    {"delta rule of groups", [](Builder& b, int64_t n) { return grouped(b, n); }},
    {"delta rule of groups in reverse", [](Builder& b, int64_t n) { return grouped(b, n, reversed()); }},
};

// `gradient`: of a loss of everything that the recurrence leaves, beside it.
Graph graph_of(const Case& c, int64_t steps, bool gradient = false) {
  Builder b;
  const Recurred r = c.make(b, steps);
  std::vector<Tensor> all = r.states;
  all.insert(all.end(), r.emits.begin(), r.emits.end());
  for (size_t k = 0; k < all.size(); ++k) b.output(all[k], "y" + std::to_string(k));
  if (!gradient) return b.graph();
  std::optional<Scalar> loss;
  for (auto& y : all) {
    std::vector<Axis> axes;
    Coords at;
    for (auto& e : y.shape()) axes.push_back(axis("i", e)), at.push_back(Index(axes.back()));
    Scalar part = square(y.at(at));
    for (size_t k = axes.size(); k-- > 0;) part = sum(axes[k], part);
    loss = loss ? *loss + part : part;
  }
  const Tensor total = map(std::vector<Axis>{}, *loss, "loss");
  std::vector<Tensor> inputs;
  for (NodeId id = 0; id < b.graph().nodes.size(); ++id)
    if (b.graph()[id].input()) inputs.push_back({&b, {id, 0}});
  const auto d = diff::grad(total, inputs);
  for (size_t k = 0; k < d.size(); ++k) b.output(d[k], "d" + inputs[k].name());
  return b.graph();
}

Graph chunked(Graph g, int64_t block, int* done = nullptr) {
  auto all = rewrite::chunk_all(g, block);
  if (done) *done = all ? int(all->what.size()) : 0;
  return all ? all->graph : g;
}

void expect_near(const Outputs& want, const Outputs& got, double most, const std::string& what) {
  for (auto& [name, a] : want) {
    const Array& b = got.at(name);
    ASSERT_EQ(a.shape, b.shape) << what << " " << name;
    double size = 1;
    for (double r : a.r) size = std::max(size, std::fabs(r));
    for (int64_t k = 0; k < a.size(); ++k)
      ASSERT_LE(std::fabs(a.at(k).r - b.at(k).r), most * size) << what << " " << name << " at " << k;
  }
}
} // namespace

// Chunks that fill the time and such that leave steps over; as written and as the rules leave them.
TEST(grad_chunks, values_are_those_of_the_recurrence) {
  for (auto& c : cases) {
    const Graph g = graph_of(c, 13);
    const Inputs in = inputs_of(g);
    const auto want = eval::run(g, in);
    for (int64_t block : {1, 2, 4, 5, 13, 64}) {
      int done = 0;
      const Graph now = chunked(g, block, &done);
      EXPECT_EQ(done, block > 1 && 2 * block <= 13) << c.name << " in chunks of " << block;
      expect_near(want, eval::run(now, in), 1e-13, c.name + " in chunks of " + std::to_string(block));
      expect_near(want, eval::run(rewrite::optimize(now).graph, in), 1e-13,
                  c.name + " rewritten, " + std::to_string(block));
    }
  }
}

// The adjoint of a recurrence that is affine in its states is one, too.
TEST(grad_chunks, gradients_are_those_of_the_recurrence) {
  for (auto& c : cases) {
    const Graph g = graph_of(c, 13, true);
    const Inputs in = inputs_of(g);
    const auto want = eval::run(g, in);
    int done = 0;
    const Graph now = chunked(g, 4, &done);
    EXPECT_EQ(done, 2) << c.name;
    expect_near(want, eval::run(now, in), 1e-12, c.name);
    const Graph forward = graph_of(c, 13);
    GradientCheck check(chunked(forward, 4), inputs_of(forward),
                        c.name); // and differentiating what the rule made
    check.run();
    if (HasFatalFailure()) return;
    check.expect_central();
    check.expect_forward();
    GradientCheck asked(forward, inputs_of(forward), c.name + ", asked for");
    asked.run({.chunk = 4});
    if (HasFatalFailure()) return;
    bool named = false;
    for (auto& s : asked.reverse->trace.steps) named |= s.rule == "chunk";
    EXPECT_TRUE(named) << c.name;
    asked.expect_central();
    asked.expect_forward();
  }
}

// Factors that vanish: products of decays that underflow are 0, where ratios of running products would be 0 /
// 0 and running sums of logarithms lose all digits.
TEST(grad_chunks, strong_decay_is_forgotten_exactly) {
  const Graph g = graph_of(cases[2], 12);
  Inputs in = inputs_of(g);
  for (double& x : in.at("gate").r) x = x < 0 ? -800 : -0.1 * x; // exp(-800) is 0
  const auto want = eval::run(g, in);
  expect_near(want, eval::run(chunked(g, 4), in), 1e-14, "strong decay");
  for (double& x : in.at("gate").r) x = -200;
  expect_near(eval::run(g, in), eval::run(rewrite::optimize(chunked(g, 6)).graph, in), 1e-14,
              "decay of every step");
}

TEST(grad_chunks, kernels_of_the_c_target_are_right) {
  for (auto& c : cases)
    for (bool gradient : {false, true}) {
      const Graph g = graph_of(c, 22, gradient);
      run::Options o;
      o.guards = true;
      o.schedule.chunk = 5;
      run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(2), o);
      bool named = false;
      for (auto& s : p.derivation().trace.steps) named |= s.rule == "chunk";
      EXPECT_TRUE(named) << c.name;
      const auto report = verify::verify(p, g, inputs_of(g), 1e-4, 2);
      for (auto& k : report.kernels)
        EXPECT_TRUE(k.ok) << c.name << ": " << k.what << " (" << k.schedule << "): error " << k.error
                          << " of " << k.scale << ". " << k.why;
      for (auto& k : report.outputs) EXPECT_TRUE(k.ok) << c.name << ": " << k.what << " error " << k.error;
      EXPECT_TRUE(report.trespass.empty());
    }
}

// Lengths around a chunk, and chunks of many sizes; keys of length 1, all alike, or of any length, with which
// the triangular system is as badly conditioned as the recurrence itself.
TEST(grad_chunks, case_85_and_86_chunks_of_the_delta_rule_against_its_recurrence) {
  for (int64_t steps : {63, 64, 65}) {
    const Graph g = graph_of({"", delta}, steps);
    for (const char* keys : {"normal", "alike", "any"}) {
      Inputs in = inputs_of(g);
      Array& k = in.at("k");
      for (int64_t t = 0; t < steps; ++t) {
        double norm = 0;
        for (int64_t x = 0; x < 4; ++x) {
          if (*keys == 'a' && keys[1] == 'l') k.r[size_t(4 * t + x)] = k.r[size_t(x)];
          norm += std::pow(k.r[size_t(4 * t + x)], 2);
        }
        for (int64_t x = 0; x < 4 && std::string(keys) != "any"; ++x)
          k.r[size_t(4 * t + x)] /= std::sqrt(norm);
        in.at("beta").r[size_t(t)] = *keys == 'n' ? std::fabs(in.at("beta").r[size_t(t)]) : 1;
        in.at("gate").r[size_t(t)] = t % 7 == 3    ? -30
                                     : t % 11 == 5 ? -100
                                                   : -0.1 * std::fabs(in.at("gate").r[size_t(t)]);
      }
      const auto want = eval::run(g, in);
      for (int64_t block : {2, 4, 5, 16, 31})
        expect_near(want, eval::run(chunked(g, block), in), 1e-12,
                    std::string(keys) + " keys, " + std::to_string(steps) + " in chunks of " +
                        std::to_string(block));
    }
  }
}

// Scores of pairs of steps in place of states: nothing of the size of all states is stored.
TEST(grad_chunks, attention_with_a_decay_stores_no_states) {
  Builder b;
  const int64_t steps = 256, keys = 32, values = 32;
  const Tensor q = b.input("q", {steps, keys}), k = b.input("k", {steps, keys}),
               v = b.input("v", {steps, values});
  const Tensor gate = b.input("gate", {steps});
  b.output(gated_linear_attention(q, k, v, gate).out, "y");
  run::Options o;
  o.schedule.chunk = 32;
  const run::Derivation d = run::derive(b.graph(), o);
  int64_t largest = 0;
  for (auto& buffer : d.plan.buffers) largest = std::max(largest, eval::volume(buffer.shape));
  std::printf("largest array %lld words, %zu kernels\n", static_cast<long long>(largest),
              d.kernels.kernels.size());
  EXPECT_LE(largest, steps * values);
}

// Chosen where the chunks evaluate few more terms than the steps: not for small states, where each step by each later
// one is more than they are; not for a factor a feature; not for the delta rule's triangular systems.
TEST(grad_chunks, an_estimate_chooses_them_for_gradients) {
  const int64_t steps = 70;
  auto gradient = [&](const std::string& what, int64_t size, const diff::Options& options) {
    Builder b;
    const Tensor q = b.input("q", {steps, size}), k = b.input("k", {steps, size}), v = b.input("v", {steps, size}),
                 gate = b.input("gate", {steps});
    Tensor y;
    if (what == "scan") {
      const Axis t = axis("t", steps), u = axis("u", size);
      y = recur(t, {carried("h", {size})}, [&](const std::vector<Tensor>& old) -> Step {
            const Tensor next = map({u}, sigmoid(q(t, u)) * old[0](u) + v(t, u), "h");
            return {{next}, {next}};
          }).emits[0];
    } else if (what == "delta rule") {
      y = gated_delta_rule(q, k, v, gate, b.input("beta", {steps}), b.input("start", {size, size})).out;
    } else {
      y = gated_linear_attention(q, k, v, gate).out;
    }
    const std::vector<Tensor> of{q, v};
    const auto d = diff::vjp(y, b.input("dy", {steps, size}), of, Where::here(), options);
    for (size_t n = 0; n < of.size(); ++n) b.output(d[n], "d" + of[n].name());
    return b.graph();
  };
  auto step_by_step = [&](const Graph& g) {
    return std::any_of(g.nodes.begin(), g.nodes.end(), [&](auto& n) { return n.recur() && n.recur()->steps == Extent(steps); });
  };
  for (auto [what, size, chosen] : {std::tuple{"attention", 64, true}, {"attention", 16, false}, {"scan", 64, false}, {"delta rule", 64, false}}) {
    const Graph g = gradient(what, size, {}), plain = gradient(what, size, {.chunk = 0});
    EXPECT_EQ(step_by_step(g), !chosen) << what << " of " << size;
    EXPECT_TRUE(step_by_step(plain)) << what;
    if (!chosen) {
      EXPECT_EQ(ir::hash(g), ir::hash(plain)) << what << " of " << size;
      continue;
    }
    const Inputs in = inputs_of(g);
    expect_near(eval::run(plain, in), eval::run(g, in), 1e-12, what);
  }
}

TEST(grad_chunks, what_is_not_affine_is_refused_by_name) {
  const auto why =
      [](const std::function<Step(const std::vector<Tensor>&, const Tensor&, const Axis&, const Axis&)>& step,
         Format f = Format::f32) {
        Builder b;
        const Tensor x = b.input("x", {12, 4});
        const Axis t = axis("t", 12), u = axis("u", 4);
        const Recurred r =
            recur(t, {carried("h", std::vector<Extent>{4}, f), carried("m", std::vector<Extent>{4})},
                  [&](const std::vector<Tensor>& old) { return step(old, x, t, u); });
        b.output(r.states[0], "y");
        const auto done = rewrite::chunk(b.graph(), b.graph().outputs[0].port.node, 4);
        return done ? std::string() : done.why();
      };
  const auto with = [](const Scalar& h, const Scalar& m, const Axis& u) {
    return Step{{map({u}, h), map({u}, m)}, {}};
  };
  using Old = const std::vector<Tensor>&;
  EXPECT_EQ(why([&](Old s, const Tensor& x, const Axis& t, const Axis& u) {
              return with(s[0](u) + x(t, u), s[0](u) * s[1](u), u);
            }),
            "");
  EXPECT_NE(why([&](Old s, const Tensor& x, const Axis& t, const Axis& u) {
              return with(tanh(s[0](u)) + x(t, u), s[1](u), u);
            }).find("the derivative of the next h mentions h"),
            std::string::npos);
  EXPECT_NE(why([&](Old s, const Tensor& x, const Axis& t, const Axis& u) {
              return with(s[1](u) + x(t, u), s[0](u), u);
            }).find("other states move"),
            std::string::npos);
  EXPECT_NE(why([&](Old s, const Tensor& x, const Axis& t, const Axis& u) {
              return with(s[0].at({3 - Index(u)}) + x(t, u), s[1](u), u);
            }).find("at another place"),
            std::string::npos);
  EXPECT_NE(why([&](Old s, const Tensor& x, const Axis& t, const Axis& u) {
              const Axis k = axis("k", 4);
              return with(sum(k, s[0](k) * x(k, u)) + x(t, u), s[1](u), u);
            }).find("an axis that the state does not have"),
            std::string::npos);
  EXPECT_NE(why([&](Old s, const Tensor& x, const Axis& t,
                    const Axis& u) { return with(s[0](u) + x(t, u), s[1](u), u); },
                Format::bf16)
                .find("is rounded at every step"),
            std::string::npos);
}
