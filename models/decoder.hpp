// A Llama-style decoder: one graph a decode step with donated key and value caches, a prefill graph at an
// offset, and a form over whole sequences to train.
#pragma once
#include "tang/models/block.hpp"

namespace tang::models {

struct DecoderSize {
  BlockSize block;
  int64_t layers = 1, vocab = 512;
  int64_t context = 256; // rows of the caches
  bool tied = true;      // the classifier is the token table
  Format cache = Format::f32;
};

struct DecoderWeights {
  Tensor tokens; // [vocab, model]
  std::vector<BlockWeights> blocks;
  Tensor norm;       // [model]
  Tensor classifier; // [vocab, model]
};

// Declares: tokens, blocks.0.q, .., norm, classifier (unless tied).
DecoderWeights decoder_weights(Builder& b, const DecoderSize& s, Format format = Format::f32,
                               Weights as = Weights::fixed);
// Each of them once, in the order of their declaration.
std::vector<Tensor> every(const DecoderWeights& w);

// One token. Inputs `token` and `pos` (rank 0, index); states keys.L and values.L [context, kv_heads, head],
// which are outputs of the same name too: select(t == pos, new, old). Attention reads rows t <= pos. Output
// logits [vocab]. A position outside the context writes nothing: check it before the step.
void decode_step(Builder& b, const DecoderWeights& w, const DecoderSize& s, Where where = Where::here());

// `rows` tokens at positions pos .. pos + rows - 1. Inputs `ids` [rows] and `pos`; the states and their
// outputs as above; logits [rows, vocab], each row as decode_step would give it.
void prefill(Builder& b, const DecoderWeights& w, const DecoderSize& s, const Extent& rows,
             Where where = Where::here());

// Whole sequences from position 0, without caches: ids [batch, row] -> logits [batch, row, vocab].
Tensor decode_sequences(const Tensor& ids, const DecoderWeights& w, const DecoderSize& s,
                        Where where = Where::here());
// logits [batch, row, class], target [batch, row] of index -> rank 0: the mean of log sum exp(logits) -
// logits[target], in nats.
Tensor next_token_loss(const Tensor& logits, const Tensor& target, Where where = Where::here());

} // namespace tang::models
