// Attention: one comprehension with masks and score changes as functions of the place in the score matrix.
#pragma once
#include <functional>
#include <optional>

#include "tang/models/softmax.hpp"

namespace tang::models {

// A place in the score matrix.
struct Spot {
  Axis batch;
  std::vector<Axis> heads; // {head}, or {kv head, query head of its group}
  Axis row, key;
  Index position; // of the row among the keys: causal means key <= position
  Extent rows, keys;
  Index first; // position of row 0
  Builder* builder = nullptr;
  Where where = {};
};

// Which keys a row sees. Masks join with && and ||; a union has at most four conjunctions.
struct Mask {
  std::function<Guard(const Spot&)> at;
};

Mask operator&&(const Mask& a, const Mask& b);
Mask operator||(const Mask& a, const Mask& b);
Mask causal();                     // key <= position; bottom-right when the lengths differ
Mask window(int64_t width);        // key > position - width: with causal(), itself and width - 1 back
Mask sink(int64_t count);          // key < count
Mask prefix(int64_t length);       // key < length
Mask prefix(const Tensor& length); // key < length[batch]
// query_ids [batch, rows], key_ids [batch, keys] of index: visible iff equal (packed documents).
Mask same_document(const Tensor& query_ids, const Tensor& key_ids);
// start, end [batch, rows] of index: start <= key < end.
Mask key_range(const Tensor& start, const Tensor& end);

// What is done to a score before the mask.
using Change = std::function<Scalar(const Scalar& score, const Spot&)>;
Change soft_cap(double cap);           // cap tanh(score / cap)
Change alibi(const Tensor& slopes);    // slopes [heads..]: score - slope (position - key)   (Press 2022)
Change add_bias(const Tensor& bias);   // [rows, keys] or [heads.., rows, keys]
Change scale_by(const Tensor& factor); // rank 0: score * factor, a learned scale

// table [buckets, heads..]: T5's learned bias of the bucket of key - position (Raffel 2020): half of the
// buckets (of each direction, when bidirectional) are exact distances, the rest grow as a logarithm up to
// max_distance.
struct Buckets {
  int64_t max_distance = 128;
  bool bidirectional = true;
};

Change relative_bias(const Tensor& table, Buckets buckets = {});
// table [2 span + 1]: score + table[position - key + span].
Change distance_bias(const Tensor& table, int64_t span);

struct AttentionOptions {
  double scale = 0;            // of q.k; 0 means 1 / sqrt(d)
  std::optional<Mask> mask;    // none: every key
  Tensor keep;                 // bool [rows, keys], besides the mask
  std::vector<Change> changes; // in this order
  std::optional<Index> first;  // position of row 0; default keys - rows
  bool sigmoid = false;        // weights sigmoid(score + sigmoid_bias), not normalised (Ramapuram 2024)
  double sigmoid_bias = 0;
  bool naive = false; // scores and probabilities are stored, as a textbook writes them
};

struct Attention {
  Tensor out; // the shape of q with d replaced by v's
  Tensor lse; // q's shape without d: log sum exp of the visible scores, -inf where there is none; none for
              // sigmoid
  Tensor scores, probabilities; // of the naive form: [.., row, key], scaled, before and after the softmax
};

// q [batch, head, row, d], k [batch, head, key, d], v [batch, head, key, c]; or grouped queries: q [batch,
// kv, group, row, d] with k and v [batch, kv, key, ..]. A row that sees no key, or only scores of -inf, gives
// 0. Throws Error: ranks and extents that do not fit.
Attention attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {},
                    Where where = Where::here());

// The state of a key or value cache after this step: `fresh` [heads, d] at time `pos`, else `cache` [time,
// heads, d]. Donated: only the point of `pos` needs to be written.
Tensor append(const Tensor& cache, const Tensor& fresh, const Tensor& pos, Where where = Where::here());
// The same for a ring of as many slots as the window has keys: slot pos mod slots is replaced. Slot t then
// holds the key of the last position that is t mod slots, so that exactly the slots t <= pos are in the
// window.
Tensor append_to_ring(const Tensor& cache, const Tensor& fresh, const Tensor& pos,
                      Where where = Where::here());

} // namespace tang::models
