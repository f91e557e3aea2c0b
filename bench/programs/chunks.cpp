// Recurrences that are affine in their states, in chunks beside step after step: a scan of states, linear
// attention whose state decays, and the gated delta rule.
#include <algorithm>
#include <cmath>
#include <functional>

#include "bench.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/rewrite/directed.hpp"

namespace bench {

namespace {
struct Case {
  std::string name;
  std::function<ir::Graph(int64_t)> graph; // in chunks of so many steps; 0: step after step
};

ir::Graph in_chunks(ir::Graph g, int64_t block) {
  if (!block) return g;
  auto done = rewrite::chunk_all(g, block);
  if (!done) throw Error({}, done.why());
  return std::move(done->graph);
}

// h' = a h + b of 64 states, each with its own factor.
ir::Graph scan(int64_t steps, int64_t states, int64_t block) {
  using namespace ir;
  Builder b;
  const Tensor a = b.input("a", {steps, states}), x = b.input("x", {steps, states});
  const Axis t = axis("t", steps), u = axis("u", states);
  const Recurred r =
      recur(t, {carried("h", std::vector<Extent>{states})}, [&](const std::vector<Tensor>& old) -> Step {
        const Tensor next = map({u}, sigmoid(a(t, u)) * old[0](u) + x(t, u), "h");
        return {{next}, {next}};
      });
  b.output(r.emits[0], "y");
  return in_chunks(b.graph(), block);
}

// The output of a recurrence, with the gradients of what it reads, or without.
ir::Graph recurrence(ir::Builder& b, const ir::Tensor& y, const std::vector<ir::Tensor>& of, bool gradient,
                     int64_t block) {
  b.output(y, "y");
  if (!gradient) return in_chunks(b.graph(), block);
  const auto d = diff::vjp(y, b.input("dy", y.shape()), of, Where::here(), {.chunk = block});
  for (size_t n = 0; n < d.size(); ++n) b.output(d[n], "d" + of[n].name());
  return b.graph();
}

ir::Graph attention(int64_t steps, int64_t keys, int64_t values, bool gradient, int64_t block) {
  ir::Builder b;
  const ir::Tensor q = b.input("q", {steps, keys}), k = b.input("k", {steps, keys}),
                   v = b.input("v", {steps, values}), gate = b.input("gate", {steps});
  return recurrence(b, models::gated_linear_attention(q, k, v, gate).out, {q, k, v, gate}, gradient, block);
}

// The gated delta rule with keys of length 1, decays and rates between 0 and 1.
ir::Graph delta(int64_t steps, int64_t keys, int64_t values, bool gradient, int64_t block) {
  using namespace ir;
  Builder b;
  const Tensor q = b.input("q", {steps, keys}), k = b.input("k", {steps, keys}), v = b.input("v", {steps, values}),
               gate = b.input("gate", {steps}), beta = b.input("beta", {steps}), start = b.input("start", {keys, values});
  auto [t, x, y] = axes<"t x y">();
  const Tensor unit = map({t, x}, k(t, x) / sqrt(sum(y, square(k(t, y)))), "unit");
  const Tensor decay = map({t}, log(sigmoid(gate(t) + 2)), "decay"), rate = map({t}, sigmoid(beta(t)), "rate");
  return recurrence(b, models::gated_delta_rule(q, unit, v, decay, rate, start).out, {q, k, v, gate, beta}, gradient,
                    block);
}
} // namespace

void chunks(Bench& b) {
  std::vector<Case> cases;
  cases.push_back({"scan 4096 of 64 states", [](int64_t c) { return scan(4096, 64, c); }});
  for (int64_t d : {64, 128})
    for (bool gradient : {false, true})
      cases.push_back(
          {std::string("linear attention 4096, ") + std::to_string(d) + (gradient ? ", with gradients" : ""),
           [=](int64_t c) { return attention(4096, d, d, gradient, c); }});
  for (bool gradient : {false, true})
    cases.push_back({std::string("delta rule 4096, 64") + (gradient ? ", with gradients" : ""),
                     [=](int64_t c) { return delta(4096, 64, 64, gradient, c); }});
  for (auto& c : cases) {
    const ir::Graph written = c.graph(0);
    const auto steps = b.program(written);
    for (int64_t block : {32, 64}) {
      const auto chunked = b.program(c.graph(block));
      for (auto* p : {steps.get(), chunked.get()}) {
        uint32_t seed = 0;
        for (auto& n : written.nodes)
          if (n.input()) fill(p->data<float>(n.name), eval::volume(eval::bound(n.input()->shape)), ++seed);
      }
      Row r;
      r.section = "chunks";
      r.name = c.name;
      r.peer = "step after step";
      b.interleave(
          r, [&] { chunked->run(); }, [&] { steps->run(); }, 3, 0.5);
      r.max_error = 0;
      for (auto& o : written.outputs) {
        const float *got = chunked->data<float>(o.name), *want = steps->data<float>(o.name);
        double most = 0, gap = 0;
        for (int64_t k = 0; k < eval::volume(eval::bound(written.shape(o.port))); ++k) {
          most = std::max(most, std::fabs(double(want[k])));
          gap = std::max(gap, std::fabs(double(got[k]) - double(want[k])));
        }
        r.max_error = std::max(*r.max_error, gap / most);
      }
      r.ratio = r.theirs.best() / r.ours.best();
      r.ratio_median = r.theirs.median() / r.ours.median();
      r.more["chunk"] = double(block);
      r.more["planned_MB"] = double(chunked->derivation().plan.arena_bytes) / 1e6;
      r.more["their_MB"] = double(steps->derivation().plan.arena_bytes) / 1e6;
      r.schedule = "chunks of " + std::to_string(block);
      b.add(r);
      if (b.kernels) print_kernels(*chunked, 5);
    }
  }
}

} // namespace bench
