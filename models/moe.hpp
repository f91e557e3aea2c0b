// Mixture of experts with top-k routing (Shazeer 2017): every token gathers the weights of its experts.
#pragma once
#include "tang/models/softmax.hpp"

namespace tang::models {

struct Routing {
  Tensor experts; // [token, k] of index, best first; ties go to the smaller expert
  Tensor weights; // [token, k]
};

// logits [token, expert]: softmax over all experts, the k largest; `renormalise` divides by their sum. k
// in 1..64. No token is dropped: there is no capacity.
Routing route(const Tensor& logits, int k, bool renormalise = false, Where where = Where::here());

struct Experts {
  Tensor gate, up; // [expert, f, m]
  Tensor down;     // [expert, m, f]
};

// x [token, m] -> [token, m]: sum over a token's experts of weight * down (silu(gate x) * (up x)).
Tensor moe(const Tensor& x, const Routing& r, const Experts& e, Where where = Where::here());

// For each expert, the `capacity` tokens routed to it that score highest; others are dropped. routed [token,
// expert] bool, scores [token, expert] -> [expert, capacity] of index, -1 where there is no token. Capacity
// in 1..64.
Tensor tokens_of_experts(const Tensor& routed, const Tensor& scores, int capacity,
                         Where where = Where::here());

} // namespace tang::models
