// Gated recurrent cells and their recurrences over time.
#pragma once
#include "tang/models/mlp.hpp"

namespace tang::models {

// Weights of one cell. A gate's rows are its block of `hidden` outputs; w is [gates hidden, in] and u [gates
// hidden, hidden] (Layout::out_in), or [in, gates hidden] and [hidden, gates hidden] (Layout::in_out). Biases
// may be left out.
struct Cell {
  Tensor w, u;         // of the input, of the old state
  Tensor bias, u_bias; // [gates hidden]
  Layout layout = Layout::out_in;
  int64_t hidden = 0; // 0: read off u
};

// Gates in the order z, r, h (update, reset, candidate): z = sigmoid(..), r = sigmoid(..),
// h' = z h + (1 - z) act(candidate)   (Cho 2014).
struct Gru {
  Cell cell;
  bool reset_after = false; // r scales u h + u_bias (cuDNN, PyTorch) rather than h before the product
  Activation act = [](const Scalar& x) { return tanh(x); };
};

// x [batch, in], h [batch, hidden] -> [batch, hidden].
Tensor gru_cell(const Tensor& x, const Tensor& h, const Gru& p, Where where = Where::here());

struct Sequence {
  Tensor all;  // [time, batch, hidden]
  Tensor last; // [batch, hidden]
};

// x [time, batch, in], h0 [batch, hidden].
Sequence gru(const Tensor& x, const Tensor& h0, const Gru& p, bool reverse = false,
             Where where = Where::here());

// Gates i, f, g, o: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')   (Hochreiter 1997, with
// forget gate).
struct LstmState {
  Tensor h, c; // [batch, hidden]
};

LstmState lstm_cell(const Tensor& x, const LstmState& s, const Cell& p, Where where = Where::here());

struct LstmSequence {
  Tensor all; // [time, batch, hidden]
  LstmState last;
};

LstmSequence lstm(const Tensor& x, const LstmState& start, const Cell& p, bool reverse = false,
                  Where where = Where::here());

// The gated delta rule (Yang 2024), token by token: S <- exp(gate) S; S <- S + beta k (v - S^T k)^T; o = S^T
// q. q, k [time, key], v [time, value], gate (log decay), beta [time], start [key, value].
struct DeltaRule {
  Tensor out;   // [time, value]
  Tensor state; // [key, value]
};

DeltaRule gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                           const Tensor& beta, const Tensor& start, Where where = Where::here());

// Linear attention whose state is kept by a gate (Yang 2023), token by token: S <- sigmoid(gate) S + k v^T;
// o = S^T q, from S = 0. q, k [time, key], v [time, value], gate [time].
DeltaRule gated_linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                                 Where where = Where::here());

} // namespace tang::models
