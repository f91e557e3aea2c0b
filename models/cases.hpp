// Every builder of models/ as graphs to verify, by name; the inputs that must be given, and the largest error
// allowed.
#pragma once
#include <functional>

#include "tang/eval/oracle.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/block.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/mlp.hpp"
#include "tang/models/moe.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/models/rope.hpp"
#include "tang/models/scaled.hpp"
#include "tang/models/softmax.hpp"

namespace tang::cases {

using namespace tang::ir;
using namespace tang::models;

// Called with each graph of a builder.
struct Verify {
  std::function<void(const Graph&, eval::Inputs, double)> call;

  void operator()(const Graph& g, eval::Inputs in = {}, double budget = 1e-5) const {
    call(g, std::move(in), budget);
  }
};

inline eval::Array ids(std::vector<int64_t> shape, int64_t below, int64_t seed = 7) {
  std::vector<int64_t> v(size_t(eval::volume(shape)));
  for (auto& x : v) x = (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  return eval::indices(shape, v);
}

struct Qkv {
  Builder& b;
  int64_t heads = 3, rows = 37, keys = 37, d = 16, c = 16;
  Tensor q = b.input("q", {1, heads, rows, d}), k = b.input("k", {1, heads, keys, d}),
         v = b.input("v", {1, heads, keys, c});
};

inline Graph attended(const AttentionOptions& o, int64_t rows = 37, int64_t keys = 37) {
  Builder b;
  Qkv x{b, 3, rows, keys};
  const Attention a = attention(x.q, x.k, x.v, o);
  b.output(a.out, "out");
  if (!o.sigmoid) b.output(a.lse, "lse");
  return b.graph();
}

inline void verify_attention_masks(const Verify& expect_verified) {
  AttentionOptions o;
  expect_verified(attended(o));
  o.mask = causal();
  expect_verified(attended(o));
  expect_verified(attended(o, 37, 60));
  expect_verified(attended(o, 60, 37));
  o.mask = causal() && window(9);
  expect_verified(attended(o));
  o.mask = (causal() && window(9)) || (causal() && sink(3));
  expect_verified(attended(o));
  o.mask = causal() || prefix(11);
  expect_verified(attended(o));
}

inline void verify_attention_scores(const Verify& expect_verified) {
  AttentionOptions o;
  o.mask = causal();
  o.changes = {soft_cap(5)};
  expect_verified(attended(o));
  o.changes = {};
  o.sigmoid = true;
  expect_verified(attended(o));
  o.sigmoid = false;
  o.naive = true;
  expect_verified(attended(o));
}

inline void verify_attention_with_tables(const Verify& expect_verified) {
  for (int which : {0, 1, 2}) {
    Builder b;
    Qkv x{b};
    AttentionOptions o;
    o.mask = causal();
    if (which == 0) o.changes = {alibi(b.input("slopes", {3}))};
    if (which == 1) o.changes = {relative_bias(b.input("table", {32, 3}), {128, false})};
    if (which == 2) o.changes = {distance_bias(b.input("table", {81}), 40)};
    b.output(attention(x.q, x.k, x.v, o).out, "out");
    expect_verified(b.graph());
  }
}

inline void verify_attention_over_documents(const Verify& expect_verified) {
  Builder b;
  Qkv x{b};
  Tensor docs = b.input("docs", {1, 37}, Format::i32);
  AttentionOptions o;
  o.mask = causal() && same_document(docs, docs);
  b.output(attention(x.q, x.k, x.v, o).out, "out");
  std::vector<int64_t> v(37);
  for (size_t k = 0; k < v.size(); ++k) v[k] = int64_t(k) / 10;
  expect_verified(b.graph(), {{"docs", eval::indices({1, 37}, v)}});
}

inline void verify_grouped_queries(const Verify& expect_verified) {
  Builder b;
  Tensor q = b.input("q", {2, 2, 3, 29, 8}), k = b.input("k", {2, 2, 29, 8}), v = b.input("v", {2, 2, 29, 8});
  AttentionOptions o;
  o.mask = causal();
  b.output(attention(q, k, v, o).out, "out");
  expect_verified(b.graph());
}

inline void verify_norms(const Verify& expect_verified) {
  for (int64_t n : {1, 33, 576}) {
    Builder b;
    Tensor x = b.input("x", {7, n}), gain = b.param("gain", {n}), bias = b.param("bias", {n});
    b.output(layer_norm(x, gain, bias), "two_pass");
    b.output(layer_norm(x, gain, bias, {1e-5, Variance::welford, false}), "welford");
    b.output(rms_norm(x, gain), "rms");
    expect_verified(b.graph(), {}, n == 1 ? 2e-2 : 2e-5);
  }
  Builder b;
  Tensor x = b.input("x", {2, 6, 5, 7}), gain = b.param("gain", {6}), bias = b.param("bias", {6});
  b.output(batch_norm(x, gain, bias).y, "batch");
  b.output(instance_norm(x, gain, bias), "instance");
  b.output(group_norm(x, 3, gain, bias), "group");
  expect_verified(b.graph());
}

inline void verify_softmax_family(const Verify& expect_verified) {
  Builder b;
  Tensor x = b.input("x", {9, 50}), target = b.input("target", {9}, Format::i32);
  b.output(softmax(x), "softmax");
  b.output(log_softmax(x), "log_softmax");
  b.output(log_sum_exp(x), "lse");
  b.output(cross_entropy(x, target, 0.1), "loss");
  expect_verified(b.graph(), {{"target", ids({9}, 50)}});
}

inline void verify_mlps_and_rope(const Verify& expect_verified) {
  Builder b;
  Tensor x = b.input("x", {5, 47});
  const std::vector<Layer> layers{{b.param("w0", {64, 47}), b.param("b0", {64})},
                                  {b.param("w1", {12, 64}), b.param("b1", {12})}};
  b.output(mlp(x, layers, [](const Scalar& s) { return elu(s); }), "elu");
  b.output(mlp(x, layers, [](const Scalar& s) { return gelu(s); }), "gelu");
  b.output(swiglu(x, b.param("gate", {90, 47}), b.param("up", {90, 47}), b.param("down", {47, 90})),
           "swiglu");
  Tensor r = b.input("r", {3, 20, 16});
  b.output(rope(r), "half");
  b.output(rope(r, {10000, Pairing::interleaved}), "interleaved");
  b.output(embedding(b.param("table", {11, 6}), b.input("at", {4}, Format::i32)), "rows");
  expect_verified(b.graph(), {{"at", ids({4}, 11)}});
}

inline void verify_scaled_products(const Verify& expect_verified) {
  for (const Format f : {Format::e4m3, Format::bf16}) {
    Builder b;
    b.output(scaled_product(b.input("a", {37, 192}, f), b.input("a_scale", {3, 37}), b.param("b", {48, 192}, f),
                            b.param("b_scale", {2, 3})),
             "y");
    expect_verified(b.graph());
  }
}

inline void verify_convolutions_and_pooling(const Verify& expect_verified) {
  Builder b;
  Tensor x = b.input("x", {2, 4, 9, 11}), w = b.param("w", {6, 4, 3, 3}), g = b.param("g", {4, 1, 3, 3}),
         t = b.param("t", {4, 3, 3, 3});
  b.output(conv2d(x, w, {}, {{1}, {1}}), "same");
  b.output(conv2d(x, w, {}, {{2}, {1}, {}, {2}}), "strided");
  b.output(conv2d(x, g, {}, {{1}, {1}, {}, {1}, 4}), "depthwise");
  b.output(conv_transpose(x, t, {}, {{2}, {1}, {1}, {1}}), "transposed");
  b.output(max_pool(x, {{3}, {2}, {1}}), "max");
  b.output(avg_pool(x, {{3}, {2}, {1}}), "avg");
  b.output(conv1d(b.input("s", {2, 4, 30}), b.param("f", {6, 4, 5}), {}, {{1}, {2}}), "line");
  expect_verified(b.graph());
}

inline void verify_mixture_of_experts(const Verify& expect_verified) {
  Builder b;
  Tensor x = b.input("x", {6, 16});
  const Routing r = route(b.input("logits", {6, 8}), 2, true);
  b.output(
      moe(x, r, {b.param("gate", {8, 24, 16}), b.param("up", {8, 24, 16}), b.param("down", {8, 16, 24})}),
      "y");
  b.output(r.experts, "experts");
  expect_verified(b.graph());
}

inline void verify_transformer_blocks(const Verify& expect_verified) {
  BlockSize s;
  s.model = 48;
  s.heads = 6;
  s.kv_heads = 2;
  s.head = 8;
  s.hidden = 100;
  for (bool naive : {false, true}) {
    s.naive = naive;
    Builder b;
    Tensor x = b.input("x", {1, 40, 48});
    b.output(block(x, block_weights(b, "l0", s), s), "y");
    expect_verified(b.graph());
  }
}

inline void verify_recurrent_cells(const Verify& expect_verified) {
  Builder b;
  Tensor x = b.input("x", {1, 114}), h = b.state("h", {1, 96});
  Gru p;
  p.cell = {b.param("w", {288, 114}), b.param("u", {288, 96}), b.param("bias", {288}), {}};
  b.output(gru_cell(x, h, p), "h");
  expect_verified(b.graph());
}

inline void verify_recurrences_over_time(const Verify& expect_verified) {
  for (bool reverse : {false, true}) {
    Builder b;
    Tensor x = b.input("x", {9, 2, 5}), h = b.input("h0", {2, 7});
    Gru p;
    p.cell = {b.param("w", {21, 5}), b.param("u", {21, 7}), b.param("bias", {21}), {}};
    const Sequence s = gru(x, h, p, reverse);
    b.output(s.all, "all");
    b.output(s.last, "last");
    expect_verified(b.graph());
  }
  Builder b;
  Tensor x = b.input("x", {6, 1, 4});
  const LstmSequence s = lstm(x, {b.input("h0", {1, 5}), b.input("c0", {1, 5})},
                              {b.param("w", {20, 4}), b.param("u", {20, 5}), b.param("bias", {20}), {}});
  b.output(s.all, "all");
  b.output(s.last.h, "h");
  expect_verified(b.graph());
}

inline void verify_gated_delta_rule(const Verify& expect_verified) {
  Builder b;
  const DeltaRule d = gated_delta_rule(b.input("q", {5, 4}), b.input("k", {5, 4}), b.input("v", {5, 3}),
                                       b.input("gate", {5}), b.input("beta", {5}), b.input("start", {4, 3}));
  b.output(d.out, "out");
  b.output(d.state, "state");
  expect_verified(b.graph());
}

inline void verify_one_decode_step(const Verify& expect_verified) {
  DecoderSize s;
  s.block = {64, 8, 4, 8, 172, 1e-5, {10000, Pairing::interleaved}};
  s.layers = 2;
  s.vocab = 50;
  s.context = 20;
  Builder b;
  decode_step(b, decoder_weights(b, s), s);
  expect_verified(b.graph(), {{"token", eval::indices({}, {7})}, {"pos", eval::indices({}, {5})}});
}

inline void verify_sequences_and_their_loss(const Verify& expect_verified) {
  DecoderSize s;
  s.block = {16, 4, 2, 4, 24, 1e-5, {}};
  s.layers = 1;
  s.vocab = 11;
  Builder b;
  const Tensor in = b.input("ids", {2, 9}, Format::i32), target = b.input("target", {2, 9}, Format::i32);
  const Tensor logits = decode_sequences(in, decoder_weights(b, s), s);
  b.output(logits, "logits");
  b.output(next_token_loss(logits, target), "loss");
  expect_verified(b.graph(), {{"ids", ids({2, 9}, 11)}, {"target", ids({2, 9}, 11, 3)}});
}

struct Case {
  const char* name;
  void (*run)(const Verify&);
};

inline const Case builders[] = {
    {"attention_masks", verify_attention_masks},
    {"attention_scores", verify_attention_scores},
    {"attention_with_tables", verify_attention_with_tables},
    {"attention_over_documents", verify_attention_over_documents},
    {"grouped_queries", verify_grouped_queries},
    {"norms", verify_norms},
    {"softmax_family", verify_softmax_family},
    {"mlps_and_rope", verify_mlps_and_rope},
    {"scaled_products", verify_scaled_products},
    {"convolutions_and_pooling", verify_convolutions_and_pooling},
    {"mixture_of_experts", verify_mixture_of_experts},
    {"transformer_blocks", verify_transformer_blocks},
    {"recurrent_cells", verify_recurrent_cells},
    {"recurrences_over_time", verify_recurrences_over_time},
    {"gated_delta_rule", verify_gated_delta_rule},
    {"one_decode_step", verify_one_decode_step},
    {"sequences_and_their_loss", verify_sequences_and_their_loss},
};

} // namespace tang::cases
