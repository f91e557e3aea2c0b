// Linear layers, MLPs, gated MLPs, embeddings.
#pragma once
#include <functional>

#include "tang/models/shapes.hpp"

namespace tang::models {

using Activation =
    std::function<Scalar(const Scalar&)>; // relu, gelu, gelu_tanh, elu, silu, tanh, sigmoid, ..

enum class Layout {
  out_in, // w [out, in]: y = w x
  in_out, // w [in, out]: y = x w
};
// x [.., in], w, bias [out] (may be left out) -> [.., out], then the activation if one is given.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Activation& act = {},
              Layout layout = Layout::out_in, Where where = Where::here());

struct Layer {
  Tensor w, bias;
};

// Layer after layer with the activation between them; none after the last.
Tensor mlp(const Tensor& x, const std::vector<Layer>& layers, const Activation& act,
           Layout layout = Layout::out_in, Where where = Where::here());

// x [.., m], gate [f, m], up [f, m], down [m, f] -> [.., m]: down (silu(gate x) * (up x))   (Shazeer 2020,
// GLU variants) `stored` writes both products down before they meet.
Tensor swiglu(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down, bool stored = false,
              Where where = Where::here());

// table [rows, d], ids [..] of index -> [.., d]. A row outside the table is a fault.
Tensor embedding(const Tensor& table, const Tensor& ids, Where where = Where::here());
// a + b, of one shape.
Tensor add(const Tensor& a, const Tensor& b, Where where = Where::here());

} // namespace tang::models
