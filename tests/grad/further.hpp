// Graphs to differentiate besides those of cases.hpp: the builders' other options, and blocks made of several.
#pragma once
#include "tang/models/cases.hpp"

namespace tang::cases {

// What is learned beside q, k and v, and masks that are read from tensors, with rows that see no key.
inline void differentiate_biases(const Verify& expect) {
  for (bool naive : {false, true})
    for (int which : {0, 1, 2, 3, 4, 5, 6}) {
      Builder b;
      Qkv x{b, 2, 9, 11, 4, 3};
      AttentionOptions o;
      o.naive = naive;
      eval::Inputs in;
      if (which == 0) o.changes = {add_bias(b.input("bias", {9, 11}))};
      if (which == 1) o.changes = {add_bias(b.input("bias", {2, 9, 11})), soft_cap(2)}, o.mask = causal();
      if (which == 2) o.changes = {scale_by(b.input("factor", {})), alibi(b.input("slopes", {2}))};
      if (which == 3) o.changes = {relative_bias(b.input("table", {32, 2}), {128, true})};
      if (which == 4) {
        o.mask = key_range(b.input("from", {1, 9}, Format::i32), b.input("to", {1, 9}, Format::i32));
        in["from"] = eval::indices({1, 9}, {0, 3, 5, 5, 9, 10, 2, 0, 11});
        in["to"] = eval::indices({1, 9}, {10, 4, 5, 4, 10, 10, 9, 1, 11}); // four rows see no key, the last among them, and none sees the last key
      }
      if (which == 5) o.mask = prefix(b.input("length", {1}, Format::i32)), in["length"] = eval::indices({1}, {4});
      if (which == 6) {
        o.keep = b.input("keep", {9, 11}, Format::boolean);
        in["keep"] = eval::Array({9, 11}, Type::boolean);
        for (size_t k = 0; k < 99; ++k) in["keep"].i[k] = k / 11 % 6 != 2 && k % 11 < 10 && k * k % 3 == 1; // two rows see no key
      }
      b.output(attention(x.q, x.k, x.v, o).out, "out");
      expect(b.graph(), in);
    }
}

// Keys and values in pages of four rows, in the order of a table.
inline void differentiate_pages(const Verify& expect) {
  Builder b;
  const Tensor q = b.input("q", {5, 4}), k = b.input("k", {20, 4}), v = b.input("v", {20, 3});
  const Tensor page = b.input("page", {3}, Format::i32);
  const Axis i = axis("i"), s = axis("s"), o = axis("o", Extent(4)), d = axis("d"), c = axis("c");
  const Index slot = 4 * Index(page(s)) + Index(o);
  const Scalar score = sum(d, q(i, d) * k(slot, d));
  b.output(map({i, c}, attend({s, o}, score, v(slot, c)).out), "out");
  expect(b.graph(), {{"page", eval::indices({3}, {3, 0, 4})}});
}

inline void differentiate_norms(const Verify& expect) {
  Builder b;
  const Tensor x = b.input("x", {2, 6, 5, 4}), gain = b.param("gain", {6}), bias = b.param("bias", {6});
  b.output(batch_norm(x, gain, bias, 1e-5, Variance::welford).y, "batch");
  b.output(instance_norm(x, gain, bias, 1e-5, Variance::welford), "instance");
  b.output(group_norm(x, 2, gain, bias, 1e-5, Variance::welford), "group");
  const Normed n = batch_norm(x, gain, bias);
  b.output(n.mean, "mean"), b.output(n.variance, "variance");
  // Statistics as tensors: squares, so that the variance is one.
  auto [c] = axes<"c">();
  const Tensor kept = b.input("kept", {6}), square_of = map({c}, square(kept(c)) + 0.1, "variance");
  b.output(batch_norm_with(x, b.input("m", {6}), square_of, gain, bias), "with");
  expect(b.graph());
}

// Adaptive instance norm (Huang 2017): the content's maps take the mean and the deviation of the style's.
inline void differentiate_adain(const Verify& expect) {
  Builder b;
  const Tensor content = b.input("content", {2, 3, 5, 4}), style = b.input("style", {2, 3, 4, 6});
  const Axis n = axis("n", Extent(2)), c = axis("c", Extent(3)), i = axis("i"), j = axis("j"), p = axis("p", Extent(4)),
             q = axis("q", Extent(6)), k = axis("k", Extent(5)), l = axis("l", Extent(4));
  const Moments s = moments({p, q}, {4, 6}, style(n, c, p, q), Variance::two_pass),
                m = moments({k, l}, {5, 4}, content(n, c, k, l), Variance::welford);
  b.output(map({n, c, i, j}, sqrt(s.variance + 1e-5) * (content(n, c, i, j) - m.mean) / sqrt(m.variance + 1e-5) + s.mean), "y");
  expect(b.graph());
}

// A ConvNeXt block (Liu 2022): depthwise 7 x 7, norm over channels, two pointwise products, a scale, what went in.
inline void differentiate_convnext(const Verify& expect) {
  Builder b;
  const int64_t c = 4;
  const Tensor x = b.input("x", {1, 6, 5, c});
  Conv o;
  o.pad = {3}, o.groups = c, o.channels_last = true;
  const Tensor deep = conv2d(x, b.param("depthwise", {c, 7, 7, 1}), b.param("depthwise_bias", {c}), o);
  const Tensor normed = layer_norm(deep, b.param("gain", {c}), b.param("bias", {c}));
  const Tensor wide = linear(normed, b.param("wide", {4 * c, c}), b.param("wide_bias", {4 * c}),
                             [](const Scalar& s) { return gelu(s); });
  const Tensor back = linear(wide, b.param("narrow", {c, 4 * c}), b.param("narrow_bias", {c})), scale = b.param("scale", {c});
  auto [n, i, j, k] = axes<"n i j k">();
  b.output(map({n, i, j, k}, x(n, i, j, k) + scale(k) * back(n, i, j, k)), "y");
  expect(b.graph());
}

inline void differentiate_convolutions(const Verify& expect) {
  Builder b;
  const Tensor x = b.input("x", {2, 4, 7, 6}), last = b.input("last", {2, 7, 6, 4}), line = b.input("line", {2, 4, 15});
  const Tensor bias = b.param("bias", {6});
  b.output(conv2d(x, b.param("grouped", {6, 2, 3, 2}), bias, {{2, 1}, {1, 2}, {2, 1}, {1, 2}, 2},
                  [](const Scalar& s) { return tanh(s); }), "in groups");
  b.output(conv2d(last, b.param("last_w", {6, 3, 3, 4}), bias, {{2}, {1}, {}, {1}, 1, true}), "channels last");
  b.output(conv1d(line, b.param("dilated", {6, 4, 3}), bias, {{1}, {4}, {0}, {2}}), "causal");
  b.output(conv_transpose(x, b.param("up", {4, 3, 3, 3}), bias, {{2}, {1}, {1}, {1}, 2}), "transposed groups");
  b.output(conv_transpose(line, b.param("up1", {4, 6, 3}), {}, {{2}, {2}, {3}, {0}}), "transposed dilated");
  b.output(max_pool(last, {{3, 2}, {2}, {1}, true}), "max");
  b.output(avg_pool(last, {{3}, {2}, {1}, true, true}), "avg");
  expect(b.graph());
}

inline void differentiate_cells(const Verify& expect) {
  for (bool after : {false, true}) {
    Builder b;
    const Tensor x = b.input("x", {4, 2, 3}), h = b.input("h", {2, 5}), c = b.input("c", {2, 5});
    Gru p;
    p.reset_after = after;
    p.cell = {b.param("w", {3, 15}), b.param("u", {5, 15}), b.param("bias", {15}), {}, Layout::in_out};
    if (after) p.cell.u_bias = b.param("u_bias", {15});
    b.output(gru(x, h, p, after).all, "gru");
    const Cell cell{b.param("lw", {20, 3}), b.param("lu", {20, 5}), b.param("lb", {20}), b.param("lub", {20})};
    const LstmSequence s = lstm(x, {h, c}, cell, true);
    b.output(s.all, "lstm"), b.output(s.last.c, "last c");
    const LstmState one = lstm_cell(b.input("now", {2, 3}), {h, c}, cell);
    b.output(one.h, "cell h"), b.output(one.c, "cell c");
    expect(b.graph());
  }
}

inline void differentiate_linear_attention(const Verify& expect) {
  Builder b;
  const DeltaRule d =
      gated_linear_attention(b.input("q", {7, 4}), b.input("k", {7, 4}), b.input("v", {7, 3}), b.input("gate", {7}));
  b.output(d.out, "out"), b.output(d.state, "state");
  expect(b.graph());
}

inline void differentiate_gpt(const Verify& expect) {
  for (bool naive : {false, true}) {
    Builder b;
    GptSize z;
    z.model = 8, z.heads = 2, z.naive = naive, z.layout = naive ? Layout::in_out : Layout::out_in;
    auto matrix = [&](const char* name, int64_t out, int64_t in) {
      return naive ? b.param(name, {in, out}) : b.param(name, {out, in});
    };
    GptWeights w{b.param("norm1", {8}), b.param("norm1_bias", {8}), matrix("qkv", 24, 8), b.param("qkv_bias", {24}),
                 matrix("proj", 8, 8),  b.param("proj_bias", {8}),  b.param("norm2", {8}), b.param("norm2_bias", {8}),
                 matrix("fc", 32, 8),   b.param("fc_bias", {32}),   matrix("out", 8, 32), b.param("out_bias", {8})};
    b.output(gpt_block(b.input("x", {2, 5, 8}), w, z).y, "y");
    expect(b.graph());
  }
}

// Positions that are given, features of which a part turns, a mean of losses, a hard target.
inline void differentiate_heads_and_tails(const Verify& expect) {
  Builder b;
  const Tensor r = b.input("r", {2, 6, 8}), at = b.input("at", {6}, Format::i32), target = b.input("target", {6}, Format::i32);
  b.output(rope_at(r, at), "placed");
  b.output(rope(r, {500, Pairing::interleaved, 4}, 3), "part");
  const Tensor logits = linear(b.input("x", {6, 5}), b.param("w", {5, 9}), b.param("bias", {9}), {}, Layout::in_out);
  b.output(mean(cross_entropy(logits, target)), "loss");
  expect(b.graph(), {{"at", ids({6}, 40)}, {"target", ids({6}, 9)}});
}

// The router's weights; and experts that choose their tokens.
inline void differentiate_routers(const Verify& expect) {
  for (int k : {1, 3}) {
    Builder b;
    const Tensor x = b.input("x", {5, 6}), logits = linear(x, b.param("router", {4, 6}));
    const Experts e{b.param("gate", {4, 7, 6}), b.param("up", {4, 7, 6}), b.param("down", {4, 6, 7})};
    b.output(moe(x, route(logits, k, k == 3), e), "y");
    const Axis t = axis("t"), a = axis("a"), c = axis("c"), m = axis("m");
    const Tensor all = map({t, a}, logits(t, a) < 100.0, "routed");
    const Tensor tokens = tokens_of_experts(all, logits, 2);
    b.output(map({a, c, m}, x(tokens(a, c), m) * logits(tokens(a, c), a)), "chosen");
    expect(b.graph());
  }
}

// A row that is put into a cache; sequences that begin with what a cache holds.
inline void differentiate_caches(const Verify& expect) {
  Builder b;
  const Tensor cache = b.input("cache", {6, 2, 3}), fresh = b.input("fresh", {2, 3}), pos = b.input("pos", {}, Format::i32);
  b.output(append(cache, fresh, pos), "appended");
  b.output(append_to_ring(cache, fresh, pos), "ring");
  expect(b.graph(), {{"pos", eval::indices({}, {4})}});
  Builder p;
  DecoderSize s;
  s.block = {8, 2, 1, 4, 12, 1e-5, {}};
  s.layers = 1, s.vocab = 7, s.context = 6;
  prefill(p, decoder_weights(p, s), s, 3);
  expect(p.graph(), {{"ids", eval::indices({3}, {3, 0, 3})}, {"pos", eval::indices({}, {2})}});
}

inline const Case further[] = {
    {"biases_and_given_masks", differentiate_biases},
    {"pages", differentiate_pages},
    {"norms_of_other_kinds", differentiate_norms},
    {"adain", differentiate_adain},
    {"convnext", differentiate_convnext},
    {"convolutions_of_other_kinds", differentiate_convolutions},
    {"cells_of_other_kinds", differentiate_cells},
    {"gated_linear_attention", differentiate_linear_attention},
    {"gpt_blocks", differentiate_gpt},
    {"heads_and_tails", differentiate_heads_and_tails},
    {"routers", differentiate_routers},
    {"caches", differentiate_caches},
};

// Every graph that gradients are tested with.
inline std::vector<Case> differentiated() {
  std::vector<Case> all(std::begin(builders), std::end(builders));
  all.insert(all.end(), std::begin(further), std::end(further));
  return all;
}

inline std::vector<const char*> names_of_differentiated() {
  std::vector<const char*> names;
  for (auto& c : differentiated()) names.push_back(c.name);
  return names;
}

// The graphs of the case of that name, with a label each.
inline void each_graph(const std::string& name,
                       const std::function<void(const Graph&, const eval::Inputs&, const std::string& label, double budget)>& f) {
  int number = 0;
  for (auto& c : differentiated())
    if (name == c.name)
      c.run({[&](const Graph& g, const eval::Inputs& in, double budget) { f(g, in, name + " " + std::to_string(number++), budget); }});
}

} // namespace tang::cases
