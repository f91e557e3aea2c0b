#include "tang/models/decoder.hpp"

#include <cmath>

#include "tang/models/softmax.hpp"

namespace tang::models {

DecoderWeights decoder_weights(Builder& b, const DecoderSize& s, Format format, Weights as) {
  const auto declare = [&](const char* name, std::vector<Extent> shape) {
    return as == Weights::trained ? b.state(name, shape, format) : b.param(name, shape, format);
  };
  DecoderWeights w;
  w.tokens = declare("tokens", {s.vocab, s.block.model});
  for (int64_t k = 0; k < s.layers; ++k)
    w.blocks.push_back(block_weights(b, "blocks." + std::to_string(k), s.block, format, as));
  w.norm = declare("norm", {s.block.model});
  w.classifier = s.tied ? w.tokens : declare("classifier", {s.vocab, s.block.model});
  return w;
}

std::vector<Tensor> every(const DecoderWeights& w) {
  std::vector<Tensor> out{w.tokens};
  for (auto& b : w.blocks)
    out.insert(out.end(),
               {b.attention_norm, b.q, b.k, b.v, b.o, b.mlp_norm, b.gate, b.up, b.down});
  out.push_back(w.norm);
  if (w.classifier.port != w.tokens.port) out.push_back(w.classifier);
  return out;
}

namespace {
struct Caches {
  Tensor keys, values;
};

// The layers over x [row, model] at positions first + row; `row` has extent 1 for a decode step.
struct Layers {
  Builder& b;
  const DecoderSize& s;
  Index first;
  Scalar pos; // the same as a value
  Extent rows;
  Where where;

  Caches declare(int64_t layer) {
    const std::vector<Extent> shape{s.context, s.block.kv_heads, s.block.head};
    const std::string n = std::to_string(layer);
    const Tensor keys = b.state("keys." + n, shape, s.cache, where);
    return {keys, b.state("values." + n, shape, s.cache, where)};
  }

  // cache[t] for t outside the rows, fresh[t - first] inside.
  Tensor updated(const Tensor& cache, const Tensor& fresh) {
    const Axis t = axis("t", Extent(s.context)), g = axis("g", Extent(s.block.kv_heads)),
               d = axis("d", Extent(s.block.head));
    const Scalar old = cache.at({t, g, d}, where);
    if (rows == Extent(1))
      return map({t, g, d}, select(iota(t) == pos, fresh.at({g, 0, d}, where), old), cache.name(), where);
    return map({t, g, d}, or_else(fresh.where_in_range({g, Index(t) - first, d}, where), old), cache.name(),
               where);
  }

  Tensor run(const Tensor& x, const BlockWeights& w, const Caches& c, int64_t layer) {
    const BlockSize& z = s.block;
    const Axis i = axis("i", rows), m = axis("m", Extent(z.model)), t = axis("t", Extent(s.context));
    const Axis g = axis("g", Extent(z.kv_heads)), r = axis("r", Extent(z.group())),
               d = axis("d", Extent(z.head)), e = axis("e", Extent(z.head));
    const Tensor normed = rms_norm(x, w.attention_norm, z.eps, where);
    const Scalar in = normed.at({i, m}, where);
    const Index kv = z.head * Index(g) + Index(d),
                q_at = z.group() * z.head * Index(g) + z.head * Index(r) + Index(d);
    const Tensor q = rope(map({g, r, i, d}, sum(m, w.q.at({q_at, m}, where) * in, where), "q", where), z.rope,
                          first, where);
    const Tensor k =
        rope(map({g, i, d}, sum(m, w.k.at({kv, m}, where) * in, where), "k", where), z.rope, first, where);
    const Tensor v = map({g, i, d}, sum(m, w.v.at({kv, m}, where) * in, where), "v", where);
    const Tensor keys = updated(c.keys, k), values = updated(c.values, v);
    b.output(keys, "keys." + std::to_string(layer), s.cache, where);
    b.output(values, "values." + std::to_string(layer), s.cache, where);
    const Scalar dot = sum(d, q.at({g, r, i, d}, where) * keys.at({t, g, d}, where), where) *
                       (1 / std::sqrt(double(z.head)));
    const Scalar score = masked(t <= Index(i) + first, dot);
    const Tensor mixed =
        map({g, r, i, e}, attend(t, score, values.at({t, g, e}, where), where).out, "attention", where);
    const Axis o = axis("o", Extent(z.model));
    const Scalar back = sum({g, r, d}, mixed.at({g, r, i, d}, where) * w.o.at({o, q_at}, where), where);
    const Tensor h = map({i, o}, x.at({i, o}, where) + back, "residual", where);
    return add(h, swiglu(rms_norm(h, w.mlp_norm, z.eps, where), w.gate, w.up, w.down, z.naive, where), where);
  }

  Tensor all(Tensor x, const DecoderWeights& w) {
    for (size_t k = 0; k < w.blocks.size(); ++k) {
      const Caches c = declare(int64_t(k));
      x = run(x, w.blocks[k], c, int64_t(k));
    }
    return linear(rms_norm(x, w.norm, s.block.eps, where), w.classifier, {}, {}, Layout::out_in, where);
  }
};

void check_size(const DecoderWeights& w, const DecoderSize& s, Where where) {
  if (int64_t(w.blocks.size()) != s.layers)
    reject(where,
           "weights of " + std::to_string(w.blocks.size()) + " layers for a decoder of " +
               std::to_string(s.layers),
           {}, "declare them with decoder_weights");
  if (s.block.kv_heads < 1 || s.block.heads % s.block.kv_heads)
    reject(where,
           std::to_string(s.block.heads) + " heads over " + std::to_string(s.block.kv_heads) + " key heads",
           {}, "the key heads divide the heads");
}
} // namespace

Tensor decode_sequences(const Tensor& ids, const DecoderWeights& w, const DecoderSize& s, Where where) {
  check_size(w, s, where);
  Tensor x = embedding(w.tokens, ids, where);
  for (auto& weights : w.blocks) x = block(x, weights, s.block, where);
  return linear(rms_norm(x, w.norm, s.block.eps, where), w.classifier, {}, {}, Layout::out_in, where);
}

Tensor next_token_loss(const Tensor& logits, const Tensor& target, Where where) {
  Shapes s(where);
  s("logits", logits, "batch row class")("target", target, "batch row");
  auto [b, i, c] = axes<"b i c">();
  const Scalar lse = attend(c, logits.at({b, i, c}, where), Scalar(1.0), where).lse;
  const Scalar hit = logits.at({b, i, target.at({b, i}, where)}, where);
  const Scalar total = sum({b, i}, lse - hit, where);
  return map(std::vector<Axis>{}, total / count(Over{b, i}, {s["batch"], s["row"]}), "loss", where);
}

void decode_step(Builder& b, const DecoderWeights& w, const DecoderSize& s, Where where) {
  check_size(w, s, where);
  const Tensor token = b.input("token", {}, Format::i32, where), pos = b.input("pos", {}, Format::i32, where);
  const Scalar at = pos.at({}, where);
  Layers layers{b, s, Index(at), at, 1, where};
  const Axis row = axis("i", Extent(1)), m = axis("m", Extent(s.block.model)), c = axis("c", Extent(s.vocab));
  const Tensor x = map({row, m}, w.tokens.at({token.at({}, where), m}, where), "x", where);
  const Tensor logits = layers.all(x, w);
  b.output(map({c}, logits.at({0, c}, where), "logits", where), "logits", Format::count_, where);
}

void prefill(Builder& b, const DecoderWeights& w, const DecoderSize& s, const Extent& rows, Where where) {
  check_size(w, s, where);
  const Tensor ids = b.input("ids", {rows}, Format::i32, where), pos = b.input("pos", {}, Format::i32, where);
  const Scalar at = pos.at({}, where);
  Layers layers{b, s, Index(at), at, rows, where};
  b.output(layers.all(embedding(w.tokens, ids, where), w), "logits", Format::count_, where);
}

} // namespace tang::models
