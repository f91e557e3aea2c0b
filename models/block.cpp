#include "tang/models/block.hpp"

namespace tang::models {

BlockWeights block_weights(Builder& b, const std::string& prefix, const BlockSize& s, Format format,
                           Weights as) {
  const auto param = [&](const char* name, std::vector<Extent> shape) {
    const std::string full = prefix + "." + name;
    return as == Weights::trained ? b.state(full, shape, format) : b.param(full, shape, format);
  };
  const int64_t q = s.heads * s.head, kv = s.kv_heads * s.head;
  BlockWeights w;
  w.attention_norm = param("attention_norm", {s.model});
  w.q = param("q", {q, s.model});
  w.k = param("k", {kv, s.model});
  w.v = param("v", {kv, s.model});
  w.o = param("o", {s.model, q});
  w.mlp_norm = param("mlp_norm", {s.model});
  w.gate = param("gate", {s.hidden, s.model});
  w.up = param("up", {s.hidden, s.model});
  w.down = param("down", {s.model, s.hidden});
  return w;
}

Tensor block(const Tensor& x, const BlockWeights& w, const BlockSize& z, Where where) {
  if (z.kv_heads < 1 || z.heads % z.kv_heads)
    reject(where, std::to_string(z.heads) + " heads over " + std::to_string(z.kv_heads) + " key heads", {},
           "the key heads divide the heads");
  Shapes s(where);
  s("x", x, "batch row model")("q", w.q, "q_out model")("k", w.k, "kv_out model")("v", w.v, "kv_out model")(
      "o", w.o, "model q_out");
  if (!(s["q_out"] == Extent(z.heads * z.head)) || !(s["kv_out"] == Extent(z.kv_heads * z.head)))
    reject(where, "projections to " + s["q_out"].text() + " and " + s["kv_out"].text() + " features",
           {{std::to_string(z.heads) + " and " + std::to_string(z.kv_heads) + " heads of " +
                 std::to_string(z.head),
             {}}},
           "the weights and the block's sizes belong together");
  const Axis b = axis("b", s["batch"]), i = axis("i", s["row"]), m = axis("m", s["model"]);
  const Axis g = axis("g", Extent(z.kv_heads)), r = axis("r", Extent(z.group())),
             d = axis("d", Extent(z.head));
  const Tensor normed = rms_norm(x, w.attention_norm, z.eps, where);
  const Scalar in = normed.at({b, i, m}, where);
  const Index kv = z.head * Index(g) + Index(d),
              q_at = z.group() * z.head * Index(g) + z.head * Index(r) + Index(d);
  const Tensor q =
      rope(map({b, g, r, i, d}, sum(m, w.q.at({q_at, m}, where) * in, where), "q", where), z.rope, 0, where);
  const Tensor k =
      rope(map({b, g, i, d}, sum(m, w.k.at({kv, m}, where) * in, where), "k", where), z.rope, 0, where);
  const Tensor v = map({b, g, i, d}, sum(m, w.v.at({kv, m}, where) * in, where), "v", where);
  AttentionOptions o;
  o.mask = causal();
  o.naive = z.naive;
  const Tensor mixed = attention(q, k, v, o, where).out;
  const Axis out = axis("o", s["model"]);
  const Scalar back = sum({g, r, d}, mixed.at({b, g, r, i, d}, where) * w.o.at({out, q_at}, where), where);
  const Tensor h = map({b, i, out}, x.at({b, i, out}, where) + back, "residual", where);
  return add(h, swiglu(rms_norm(h, w.mlp_norm, z.eps, where), w.gate, w.up, w.down, z.naive, where), where);
}

GptBlock gpt_block(const Tensor& x, const GptWeights& w, const GptSize& z, Where where) {
  if (z.heads < 1 || z.model % z.heads)
    reject(where, std::to_string(z.heads) + " heads in a model of " + std::to_string(z.model), {},
           "the heads divide the model's width");
  Shapes s(where);
  s("x", x, "batch row model");
  const int64_t head = z.model / z.heads;
  if (!(s["model"] == Extent(z.model)))
    reject(where, "x has " + s["model"].text() + " features, the block " + std::to_string(z.model),
           {{x.name() + " is " + text(x.shape()), x.where()}}, "they are equal");
  GptBlock y;
  LayerNorm norm;
  norm.eps = z.eps;
  norm.stored = z.naive;
  y.norm1 = layer_norm(x, w.norm1, w.norm1_bias, norm, where);
  y.qkv = linear(y.norm1, w.qkv, w.qkv_bias, {}, z.layout, where);
  const Axis b = axis("b", s["batch"]), h = axis("h", Extent(z.heads)), i = axis("i", s["row"]),
             d = axis("d", Extent(head)), o = axis("o", s["model"]);
  auto part = [&](int64_t which, const char* name) {
    return map({b, h, i, d}, y.qkv.at({b, i, Index(which * z.model) + head * Index(h) + Index(d)}, where),
               name, where);
  };
  y.q = part(0, "q"), y.k = part(1, "k"), y.v = part(2, "v");
  AttentionOptions options;
  options.mask = causal();
  options.naive = z.naive;
  const Attention a = attention(y.q, y.k, y.v, options, where);
  y.mixed = a.out, y.scores = a.scores, y.probabilities = a.probabilities;
  const Index from = head * Index(h) + Index(d);
  const Scalar proj = z.layout == Layout::out_in ? w.proj.at({o, from}, where) : w.proj.at({from, o}, where);
  Scalar back = sum({h, d}, y.mixed.at({b, h, i, d}, where) * proj, where);
  if (given(w.proj_bias)) back = back + w.proj_bias.at({o}, where);
  y.proj = map({b, i, o}, back, "proj", where);
  y.residual1 = add(x, y.proj, where);
  y.norm2 = layer_norm(y.residual1, w.norm2, w.norm2_bias, norm, where);
  y.hidden = linear(y.norm2, w.fc, w.fc_bias, {}, z.layout, where);
  const std::vector<Axis> all = axes_of(y.hidden, "f");
  y.active = map(all, z.act(y.hidden.at(coords(all), where)), "active", where);
  y.mlp = linear(y.active, w.out, w.out_bias, {}, z.layout, where);
  y.y = add(y.residual1, y.mlp, where);
  return y;
}

} // namespace tang::models
