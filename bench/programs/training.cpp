// A transformer block forward and backward, and whole training steps, beside torch (torch_peers.py has the same names).
#include <algorithm>
#include <cmath>

#include "bench.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/optim.hpp"
#include "tang/verify/verify.hpp"

namespace bench {

namespace {
// The paper's block at batch 1: y, and the gradients of x and of every weight for a given dy.
ir::Graph block_and_gradients(int64_t rows) {
  ir::Builder b;
  const models::BlockSize s;
  const Tensor x = b.input("x", {1, rows, s.model}), dy = b.input("dy", {1, rows, s.model});
  const models::BlockWeights w = models::block_weights(b, "l0", s);
  const Tensor y = models::block(x, w, s);
  b.output(y, "y");
  const std::vector<Tensor> by{x, w.attention_norm, w.q, w.k, w.v, w.o, w.mlp_norm, w.gate, w.up, w.down};
  const std::vector<Tensor> d = vjp(y, dy, by);
  for (size_t k = 0; k < by.size(); ++k) b.output(d[k], "d " + by[k].name());
  return b.graph();
}

// Llama style over 64 letters: forward, backward, AdamW; what is updated is the program's state.
ir::Graph training_step(int64_t layers, int64_t model, int64_t heads, int64_t batch, int64_t context) {
  ir::Builder b;
  models::DecoderSize s;
  s.block.model = model, s.block.heads = s.block.kv_heads = heads, s.block.head = model / heads, s.block.hidden = 3 * model;
  s.layers = layers, s.vocab = 64;
  const Tensor ids = b.input("ids", {batch, context}, ir::Format::i32), target = b.input("target", {batch, context}, ir::Format::i32);
  const auto w = models::decoder_weights(b, s, ir::Format::f32, models::Weights::trained);
  const Tensor loss = models::next_token_loss(models::decode_sequences(ids, w, s), target);
  models::AdamW o;
  o.rate.peak = 1e-3, o.clip = 1;
  models::adamw(models::every(w), grad(loss, models::every(w)), o);
  b.output(loss, "loss");
  return b.graph();
}

eval::Inputs inputs_of(const ir::Graph& g) {
  eval::Inputs in;
  uint32_t seed = 5;
  for (auto& n : g.nodes) {
    const ir::Input* x = n.input();
    if (!x) continue;
    const auto shape = eval::bound(x->shape);
    eval::Array a(shape, ir::type_of(x->format));
    const bool moment = n.name.ends_with(".m") || n.name.ends_with(".v");
    std::vector<float> f(size_t(a.size()));
    fill(f.data(), a.size(), ++seed);
    for (size_t k = 0; k < f.size(); ++k) {
      if (n.name == "ids" || n.name == "target") a.i[k] = int64_t((double(f[k]) + 0.5) * 64);
      else if (!a.r.empty() && !moment) a.r[k] = shape.size() == 1 ? 1 : double(f[k]) * (x->kind == ir::Input::data ? 1 : std::sqrt(12 / double(shape.back())));
    }
    in[n.name] = std::move(a);
  }
  return in;
}

// Largest difference of any output from the program as the graph is written, after one run from the same inputs. Of a
// training step the loss and the first moments, a tenth of the gradients: the first move of AdamW is the sign of a gradient,
// also where it is rounding alone.
double error(const Bench& b, const ir::Graph& g, const eval::Inputs& in) {
  run::Options plain = b.options();
  plain.optimize = false;
  plain.schedule = schedule::as_written();
  auto ours = b.program(g), theirs = b.program(g, plain);
  double worst = 0;
  for (auto* p : {ours.get(), theirs.get()}) verify::feed(*p, g, in), p->run();
  for (auto& o : g.outputs) {
    const float *x = ours->data<float>(o.name), *y = theirs->data<float>(o.name);
    if (ours->format(o.name) != ir::Format::f32 || (in.count(o.name) && !o.name.ends_with(".m"))) continue;
    double gap = 0, most = 0;
    for (int64_t k = 0; k < ours->elements(o.name); ++k) {
      gap = std::max(gap, std::fabs(double(x[k]) - double(y[k])));
      most = std::max(most, std::fabs(double(y[k])));
    }
    worst = std::max(worst, most > 0 ? gap / most : gap);
  }
  return worst;
}
}  // namespace

void training(Bench& b) {
  auto measure = [&](const std::string& name, const ir::Graph& g, double flops) {
    const eval::Inputs in = inputs_of(g);
    auto p = b.program(g);
    verify::feed(*p, g, in);
    Row r;
    r.section = "training", r.name = name, r.unit = "GFLOP/s";
    r.max_error = error(b, g, in);
    b.interleave(r, [&] { p->run(); }, nullptr, 5, 2);
    r.rate = flops * 1e-9 / r.ours.best();
    r.more["kernels"] = double(p->derivation().kernels.kernels.size());
    r.more["planned_MB"] = double(p->derivation().plan.arena_bytes) / 1e6;
    b.add(std::move(r));
    if (b.kernels) print_kernels(*p, b.quick ? 5 : 20);
  };
  const double rows = 512, weights = 576 * 64 * 15 + 9 * 64 * 576 + 3 * 576 * 1536;
  measure("block forward+backward n512", block_and_gradients(512), 6 * rows * weights + 14 * 9 * 64 * rows * (rows + 1) / 2);
  auto step = [&](const std::string& name, int64_t layers, int64_t model, int64_t heads, int64_t batch, int64_t context) {
    const double l = double(layers), d = double(model), t = double(batch * context), c = double(context);
    measure(name, training_step(layers, model, heads, batch, context),
            6 * t * (l * (4 * d * d + 9 * d * d) + 64 * d) + 14 * l * d * t * (c + 1) / 2);
  };
  step("step L2 d128 b16 t64", 2, 128, 4, 16, 64);
  step("step L4 d128 b4 t256", 4, 128, 4, 4, 256);
}

}  // namespace bench
