// A training step of a small Llama-style model on characters, for the tests of training.
#pragma once
#include "run/harness.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/optim.hpp"
#include "tang/verify/verify.hpp"

namespace tang::test {

using eval::Inputs;

struct CharacterStep {
  int64_t layers = 2, batch = 2, context = 16, model = 32, heads = 2, vocab = 20;
  double clip = 0;
  bool scaled = false;     // the loss, for narrow storage
  double loss_times = 1;   // a loss of another size
  double rate = 1e-2;
};

inline ir::Graph character_step(const CharacterStep& z) {
  ir::Builder b;
  models::DecoderSize s;
  s.block.model = z.model;
  s.block.heads = s.block.kv_heads = z.heads;
  s.block.head = z.model / z.heads;
  s.block.hidden = 2 * z.model;
  s.layers = z.layers;
  s.vocab = z.vocab;
  const ir::Tensor ids = b.input("ids", {z.batch, z.context}, ir::Format::i32),
                   target = b.input("target", {z.batch, z.context}, ir::Format::i32);
  const auto w = models::decoder_weights(b, s, ir::Format::f32, models::Weights::trained);
  ir::Tensor loss = models::next_token_loss(models::decode_sequences(ids, w, s), target);
  b.output(loss, "loss");
  if (z.loss_times != 1) loss = ir::map(std::vector<ir::Axis>{}, z.loss_times * loss(), "smaller loss");
  models::AdamW o;
  o.rate.peak = z.rate;
  o.clip = z.clip;
  o.eps *= z.loss_times;
  if (z.scaled) o.scaled = models::scaled(loss, 50);
  const auto weights = models::every(w);
  models::adamw(weights, diff::grad(z.scaled ? o.scaled.loss : loss, weights), o);
  return b.graph();
}

// Weights by a fixed seed, a text of numbers with some order in it; every other input is 0.
inline Inputs first_inputs(const ir::Graph& g, const CharacterStep& z) {
  Inputs in;
  std::map<std::string, const ir::Input*> all;
  for (auto& n : g.nodes)
    if (n.input()) all[n.name] = n.input();
  uint64_t seed = 1;
  for (auto& [name, x] : all) {
    const auto shape = eval::bound(x->shape);
    const bool moment = name.ends_with(".m") || name.ends_with(".v");
    in[name] = eval::Array(shape, ir::type_of(x->format));
    if (moment || name.starts_with("loss.") || name == "step" || name == "ids" || name == "target") continue;
    in[name] = random_reals(shape, ++seed);
    for (double& v : in[name].r) v = shape.size() < 2 ? 1 : double(float(v * std::sqrt(3 / double(shape.back()))));
  }
  int64_t at = 0;
  auto letter = [&](int64_t k) { return (k * k / 3 + k % 5) % z.vocab; };
  for (int64_t n = 0; n < z.batch; ++n)
    for (int64_t i = 0; i < z.context; ++i, ++at) {
      in["ids"].i[size_t(at)] = letter(7 * n + i);
      in["target"].i[size_t(at)] = letter(7 * n + i + 1);
    }
  if (in.count("loss.scale")) in["loss.scale"].r[0] = 1;
  return in;
}

} // namespace tang::test
