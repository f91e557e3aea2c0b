// llama2.c checkpoint version 0: seven int32, then the f32 tensors of a Llama-style decoder.
#pragma once
#include <cstdint>

#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

struct LlamaConfig {
  int64_t dim = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, vocab = 0, seq_len = 0;
  bool tied = true; // the output layer is the embedding; else tensor "wcls"

  int64_t head_dim() const { return dim / heads; }

  int64_t kv_dim() const { return kv_heads * head_dim(); }
};

// Tensors, l layers, d dim, k kv_dim, h hidden, v vocab:
//   tok_emb [v,d]  att_norm [l,d]  wq [l,d,d]  wk [l,k,d]  wv [l,k,d]  wo [l,d,d]  ffn_norm [l,d]
//   w1 [l,h,d]  w2 [l,d,h]  w3 [l,h,d]  final_norm [d]  wcls [v,d] if untied
// Matrices are [out, in]. The rotation tables that old writers stored (seq_len * head_dim floats) are left
// out.
struct LlamaCheckpoint {
  LlamaConfig config;
  TensorFile tensors;
};

// Throws Error unless the header's numbers are positive, divide each other as they must and give exactly the
// file's size.
LlamaCheckpoint read_llama2c(File file);

} // namespace tang::formats
