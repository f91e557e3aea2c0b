// Transformer blocks: Llama style (rms norm, rotary, grouped queries, SwiGLU) and GPT-2 style (layer norm,
// GELU).
#pragma once
#include "tang/models/attention.hpp"
#include "tang/models/mlp.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/rope.hpp"

namespace tang::models {

// The paper's block: d 576, 9 heads over 3 key heads of 64, SwiGLU 1536.
struct BlockSize {
  int64_t model = 576, heads = 9, kv_heads = 3, head = 64, hidden = 1536;
  double eps = 1e-5;
  Rope rope = {};
  bool naive = false; // scores, probabilities and gates are stored

  int64_t group() const { return heads / kv_heads; }
};

// Weights are [out, in]; q's rows are ordered (kv head, query head of its group, feature).
struct BlockWeights {
  Tensor attention_norm, q, k, v, o, mlp_norm, gate, up, down;
};

// What weights are declared as: params, or states that a training step replaces.
enum class Weights : uint8_t { fixed, trained };

// Declares them as `prefix`.attention_norm, `prefix`.q, ..
BlockWeights block_weights(Builder& b, const std::string& prefix, const BlockSize& s,
                           Format format = Format::f32, Weights as = Weights::fixed);

// x [batch, row, model] -> the same: x + attention(norm x), then + mlp(norm ..); causal from position 0.
Tensor block(const Tensor& x, const BlockWeights& w, const BlockSize& s, Where where = Where::here());

// GPT-2: biases everywhere, heads of equal number, gelu (tanh form). Weights [in, out] as in its checkpoints
// (Layout::in_out) or [out, in]; qkv's columns are (q | k | v, head, feature).
struct GptWeights {
  Tensor norm1, norm1_bias, qkv, qkv_bias, proj, proj_bias, norm2, norm2_bias, fc, fc_bias, out, out_bias;
};

struct GptSize {
  int64_t model = 768, heads = 12;
  double eps = 1e-5;
  Layout layout = Layout::out_in;
  bool naive = false;
  Activation act = [](const Scalar& x) { return gelu_tanh(x); };
};

// What a reader may want to look at, besides the result.
struct GptBlock {
  Tensor norm1, qkv;            // [batch, row, model], [batch, row, 3 model]
  Tensor q, k, v, mixed;        // [batch, head, row, feature]; mixed: the attention's result
  Tensor scores, probabilities; // [batch, head, row, key], of the naive form
  Tensor proj, residual1;       // [batch, row, model]
  Tensor norm2, hidden, active; // hidden, active [batch, row, 4 model]: before and after gelu
  Tensor mlp, y;                // [batch, row, model]; y = residual1 + mlp
};

// x [batch, row, model], causal.
GptBlock gpt_block(const Tensor& x, const GptWeights& w, const GptSize& s, Where where = Where::here());

} // namespace tang::models
