// tang export proofs DIR: the tables, and the fusion steps of real compiles.
#include <cstdio>

#include "tang/cli/programs.hpp"
#include "tang/cli/tool.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/block.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/moe.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/models/rope.hpp"
#include "tang/prove/export.hpp"

namespace tang::cli {

namespace {
using namespace ir;
using namespace models;
using Compiles = std::vector<prove::Compile>;

void add(Compiles& out, const std::string& name, const std::function<void(Builder&)>& build) {
  Builder b;
  build(b);
  out.push_back({name, b.graph()});
}

void attentions(Compiles& out) {
  struct Case {
    const char* name;
    std::function<void(Builder&, AttentionOptions&)> set;
    int64_t rows = 40;
  };

  const std::vector<Case> cases{
      {"attention", [](Builder&, AttentionOptions&) {}},
      {"attention_causal", [](Builder&, AttentionOptions& o) { o.mask = causal(); }},
      {"attention_bottom_right", [](Builder&, AttentionOptions& o) { o.mask = causal(); }, 24},
      {"attention_window_or_sink",
       [](Builder&, AttentionOptions& o) { o.mask = (causal() && window(9)) || (causal() && sink(3)); }},
      {"attention_prefix", [](Builder&, AttentionOptions& o) { o.mask = causal() || prefix(11); }},
      {"attention_soft_cap",
       [](Builder&, AttentionOptions& o) { o.mask = causal(), o.changes = {soft_cap(5)}; }},
      {"attention_sigmoid", [](Builder&, AttentionOptions& o) { o.mask = causal(), o.sigmoid = true; }},
      {"attention_naive", [](Builder&, AttentionOptions& o) { o.mask = causal(), o.naive = true; }},
      {"attention_alibi",
       [](Builder& b, AttentionOptions& o) {
         o.mask = causal(), o.naive = true, o.changes = {alibi(b.input("slopes", {3}))};
       }},
      {"attention_distance",
       [](Builder& b, AttentionOptions& o) {
         o.mask = causal(), o.naive = true, o.changes = {distance_bias(b.input("table", {81}), 40)};
       }},
      {"attention_documents",
       [](Builder& b, AttentionOptions& o) {
         const Tensor ids = b.input("ids", {1, 40}, Format::i32);
         o.mask = causal() && same_document(ids, ids), o.naive = true;
       }},
  };
  for (auto& c : cases)
    add(out, c.name, [&](Builder& b) {
      AttentionOptions o;
      c.set(b, o);
      const Tensor q = b.input("q", {1, 3, c.rows, 16}), k = b.input("k", {1, 3, 40, 16}),
                   v = b.input("v", {1, 3, 40, 16});
      const Attention a = attention(q, k, v, o);
      b.output(a.out, "out");
      if (!o.sigmoid) b.output(a.lse, "lse");
    });
  add(out, "attention_grouped", [](Builder& b) {
    AttentionOptions o;
    o.mask = causal(), o.naive = true;
    const Tensor q = b.input("q", {2, 2, 3, 29, 8}), k = b.input("k", {2, 2, 29, 8}),
                 v = b.input("v", {2, 2, 29, 8});
    b.output(attention(q, k, v, o).out, "out");
  });
}

void norms_and_softmax(Compiles& out) {
  auto vectors = [](Builder& b) {
    return std::array<Tensor, 3>{b.input("x", {7, 33}), b.param("gain", {33}), b.param("bias", {33})};
  };
  add(out, "layer_norm_stored", [&](Builder& b) {
    const auto [x, gain, bias] = vectors(b);
    b.output(layer_norm(x, gain, bias, {1e-5, Variance::two_pass, true}), "y");
  });
  add(out, "layer_norm_welford", [&](Builder& b) {
    const auto [x, gain, bias] = vectors(b);
    b.output(layer_norm(x, gain, bias, {1e-5, Variance::welford, true}), "y");
  });
  add(out, "rms_norm_and_projection", [&](Builder& b) {
    const auto [x, gain, bias] = vectors(b);
    b.output(linear(rms_norm(x, gain), b.param("w", {12, 33})), "y");
  });
  add(out, "group_norm_after_conv", [](Builder& b) {
    const Tensor y = conv2d(b.input("x", {2, 4, 9, 11}), b.param("w", {6, 4, 3, 3}), {}, {{1}, {1}});
    b.output(group_norm(y, 3, b.param("gain", {6}), b.param("bias", {6})), "y");
  });
  add(out, "batch_norm", [](Builder& b) {
    b.output(batch_norm(b.input("x", {2, 6, 5, 7}), b.param("gain", {6}), b.param("bias", {6})).y, "y");
  });
  add(out, "softmax_stored", [](Builder& b) { b.output(softmax(b.input("x", {9, 50}), true), "y"); });
  add(out, "cross_entropy", [](Builder& b) {
    const Tensor logits = linear(b.input("x", {9, 16}), b.param("w", {50, 16}), b.param("bias", {50}));
    b.output(mean(cross_entropy(logits, b.input("target", {9}, Format::i32), 0.1)), "loss");
  });
}

void layers(Compiles& out) {
  const auto relu_of = [](const Scalar& s) { return relu(s); };
  const auto gelu_of = [](const Scalar& s) { return gelu_tanh(s); };
  for (const bool smooth : {false, true})
    add(out, smooth ? "mlp_gelu" : "mlp_relu", [&](Builder& b) {
      const std::vector<Layer> l{{b.param("w0", {64, 47}), b.param("b0", {64})},
                                 {b.param("w1", {32, 64}), b.param("b1", {32})},
                                 {b.param("w2", {12, 32}), b.param("b2", {12})}};
      if (smooth)
        b.output(mlp(b.input("x", {5, 47}), l, gelu_of), "y");
      else
        b.output(mlp(b.input("x", {5, 47}), l, relu_of), "y");
    });
  add(out, "swiglu_stored", [](Builder& b) {
    b.output(swiglu(b.input("x", {5, 47}), b.param("gate", {90, 47}), b.param("up", {90, 47}),
                    b.param("down", {47, 90}), true),
             "y");
  });
  for (const bool halves : {false, true})
    add(out, halves ? "rope_half" : "rope_interleaved", [&](Builder& b) {
      const Tensor x = rope(linear(b.input("x", {20, 24}), b.param("w", {16, 24})),
                            {10000, halves ? Pairing::half : Pairing::interleaved});
      b.output(linear(x, b.param("o", {8, 16})), "y");
    });
  add(out, "embedding_and_norm", [](Builder& b) {
    const Tensor x = embedding(b.param("table", {11, 6}), b.input("ids", {4}, Format::i32));
    b.output(rms_norm(models::add(x, x), b.param("gain", {6})), "y");
  });
  add(out, "conv_relu_conv", [&](Builder& b) {
    const Tensor y = conv2d(b.input("x", {2, 4, 9, 11}), b.param("w", {6, 4, 3, 3}), b.param("bias", {6}),
                            {{1}, {1}}, relu_of);
    b.output(conv2d(y, b.param("w2", {3, 6, 3, 3}), {}, {{2}, {1}}), "y");
  });
  add(out, "conv_pool", [&](Builder& b) {
    const Tensor y = conv2d(b.input("x", {2, 4, 9, 11}), b.param("w", {6, 4, 3, 3}), {}, {{1}, {1}}, relu_of);
    b.output(max_pool(y, {{3}, {2}, {1}}), "max");
    b.output(avg_pool(y, {{3}, {2}, {1}}), "avg");
  });
  add(out, "conv_transposed", [&](Builder& b) {
    b.output(conv_transpose(b.input("x", {2, 4, 9, 11}), b.param("w", {4, 3, 3, 3}), b.param("bias", {3}),
                            {{2}, {1}, {1}, {1}}),
             "y");
  });
}

void models_and_cells(Compiles& out) {
  BlockSize s;
  s.model = 48, s.heads = 6, s.kv_heads = 2, s.head = 8, s.hidden = 100;
  for (const bool naive : {false, true})
    add(out, naive ? "block_naive" : "block", [&](Builder& b) {
      BlockSize size = s;
      size.naive = naive;
      b.output(block(b.input("x", {1, 40, 48}), block_weights(b, "l0", size), size), "y");
    });
  add(out, "decoder_step", [](Builder& b) {
    DecoderSize d;
    d.block = {64, 8, 4, 8, 172, 1e-5, {10000, Pairing::interleaved}};
    d.layers = 2, d.vocab = 50, d.context = 20;
    decode_step(b, decoder_weights(b, d), d);
  });
  add(out, "prefill", [](Builder& b) {
    DecoderSize d;
    d.block = {64, 8, 4, 8, 172};
    d.vocab = 50, d.context = 20;
    prefill(b, decoder_weights(b, d), d, 8);
  });
  add(out, "moe", [](Builder& b) {
    const Routing r = route(b.input("logits", {6, 8}), 2, true);
    b.output(moe(b.input("x", {6, 16}), r,
                 {b.param("gate", {8, 24, 16}), b.param("up", {8, 24, 16}), b.param("down", {8, 16, 24})}),
             "y");
  });
  add(out, "gru_over_time", [](Builder& b) {
    Gru p;
    p.cell = {b.param("w", {21, 5}), b.param("u", {21, 7}), b.param("bias", {21}), {}};
    b.output(gru(b.input("x", {9, 2, 5}), b.input("h0", {2, 7}), p).all, "all");
  });
  add(out, "lstm_over_time", [](Builder& b) {
    const LstmSequence l = lstm(b.input("x", {6, 1, 4}), {b.input("h0", {1, 5}), b.input("c0", {1, 5})},
                                {b.param("w", {20, 4}), b.param("u", {20, 5}), b.param("bias", {20}), {}});
    b.output(l.all, "all");
  });
  add(out, "gated_delta_rule", [](Builder& b) {
    b.output(gated_delta_rule(b.input("q", {5, 4}), b.input("k", {5, 4}), b.input("v", {5, 3}),
                              b.input("gate", {5}), b.input("beta", {5}), b.input("start", {4, 3}))
                 .out,
             "out");
  });
}

// The demonstration's programs, and what the builders of models/ make.
Compiles real_compiles() {
  Compiles out;
  int number = 0;
  for (auto& n : demo_programs(1)) out.push_back({"demo_" + std::to_string(++number), n.graph});
  attentions(out);
  norms_and_softmax(out);
  layers(out);
  models_and_cells(out);
  return out;
}
} // namespace

int export_proofs(const std::string& folder) {
  const prove::Exported e = prove::exported(real_compiles());
  for (auto& f : e.files) write_text(folder + "/" + f.name, f.text);
  for (auto& r : e.refused) std::fprintf(stderr, "not printed: %s\n", r.c_str());
  for (auto& r : e.omitted) std::fprintf(stderr, "not covered: %s\n", r.c_str());
  std::printf("%s, %zu not printed: %zu files in %s\n", e.counts.c_str(), e.refused.size(), e.files.size(), folder.c_str());
  return e.refused.empty() ? 0 : 1;
}

} // namespace tang::cli
