// Recurrences that are affine in their states, in chunks beside step after step: a scan of states, and linear attention
// whose state decays.
#include <algorithm>
#include <cmath>

#include "bench.hpp"
#include "tang/models/recurrent.hpp"

namespace bench {

namespace {
struct Case {
  const char* name;
  ir::Graph graph;
  std::vector<int64_t> chunks;
};

// h' = a h + b of 64 states, each with its own factor.
ir::Graph scan(int64_t steps, int64_t states) {
  using namespace ir;
  Builder b;
  const Tensor a = b.input("a", {steps, states}), x = b.input("x", {steps, states});
  const Axis t = axis("t", steps), u = axis("u", states);
  const Recurred r = recur(t, {carried("h", std::vector<Extent>{states})}, [&](const std::vector<Tensor>& old) -> Step {
    const Tensor next = map({u}, sigmoid(a(t, u)) * old[0](u) + x(t, u), "h");
    return {{next}, {next}};
  });
  b.output(r.emits[0], "y");
  return b.graph();
}

// S' = sigmoid(gate) S + k v^T, y = S^T q.
ir::Graph attention(int64_t steps, int64_t keys, int64_t values) {
  using namespace ir;
  Builder b;
  const Tensor q = b.input("q", {steps, keys}), k = b.input("k", {steps, keys}), v = b.input("v", {steps, values});
  const Tensor gate = b.input("gate", {steps});
  const Axis t = axis("t", steps), x = axis("x", keys), c = axis("c", values);
  const Recurred r = recur(t, {carried("S", {keys, values})}, [&](const std::vector<Tensor>& old) -> Step {
    const Tensor next = map({x, c}, sigmoid(gate(t)) * old[0](x, c) + k(t, x) * v(t, c), "S");
    return {{next}, {map({c}, sum(x, next(x, c) * q(t, x)), "out")}};
  });
  b.output(r.emits[0], "y");
  return b.graph();
}
} // namespace

void chunks(Bench& b) {
  const Case cases[] = {{"scan 4096 of 64 states", scan(4096, 64), {16, 32, 64, 128}},
                        {"linear attention 4096, 64 x 64", attention(4096, 64, 64), {32, 64, 128}}};
  for (auto& c : cases) {
    const auto steps = b.program(c.graph);
    for (int64_t block : c.chunks) {
      run::Options o = b.options();
      o.schedule.chunk = block;
      const auto chunked = b.program(c.graph, o);
      uint32_t seed = 0;
      for (auto* p : {steps.get(), chunked.get()}) {
        seed = 0;
        for (auto& n : c.graph.nodes)
          if (n.input()) fill(p->data<float>(n.name), eval::volume(eval::bound(n.input()->shape)), ++seed);
      }
      Row r;
      r.section = "chunks";
      r.name = c.name;
      r.peer = "step after step";
      b.interleave(r, [&] { chunked->run(); }, [&] { steps->run(); }, 3, 0.5);
      const float *got = chunked->data<float>("y"), *want = steps->data<float>("y");
      double most = 0, gap = 0;
      for (int64_t k = 0; k < 4096 * 64; ++k) {
        most = std::max(most, std::fabs(double(want[k])));
        gap = std::max(gap, std::fabs(double(got[k]) - double(want[k])));
      }
      r.max_error = gap / most;
      r.ratio = r.theirs.best() / r.ours.best();
      r.ratio_median = r.theirs.median() / r.ours.median();
      r.more["chunk"] = double(block);
      r.more["kernels"] = double(chunked->derivation().kernels.kernels.size());
      r.schedule = "chunks of " + std::to_string(block);
      b.add(r);
      if (b.kernels) print_kernels(*chunked, 5);
    }
  }
}

} // namespace bench
