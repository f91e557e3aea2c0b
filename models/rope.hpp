// Rotary position embedding (Su 2021).
#pragma once
#include "tang/models/shapes.hpp"

namespace tang::models {

enum class Pairing {
  half,        // d pairs with d + dim / 2     (GPT-NeoX, Llama in the HF layout)
  interleaved, // 2 p pairs with 2 p + 1       (RoFormer, GPT-J, llama2.c)
};

struct Rope {
  double base = 10000;
  Pairing pairing = Pairing::half;
  int64_t dim = 0; // only the first `dim` features turn; 0: all of them
  // cos and sin of each row's and pair's angle, [row, pair]: read instead of computed. Both or none.
  Tensor cos = {}, sin = {};
};

// The angle of pair p at a position, in radians: position * base^(-2 p / dim).
Scalar rope_angle(const Scalar& position, const Axis& pair, int64_t dim, double base);

// (a, b) turned by the angle: a cos - b sin, b cos + a sin.
struct Turned {
  Scalar a, b;
};

Turned turn(const Scalar& a, const Scalar& b, const Scalar& angle);
Turned turn(const Scalar& a, const Scalar& b, const Scalar& cos, const Scalar& sin);

// x [.., row, d] -> the same shape. Row i is at `first` + i; `first` is 0, a number, or a run-time index.
// Throws Error: an odd number of features to turn, or more than x has.
Tensor rope(const Tensor& x, const Rope& options = {}, const Index& first = 0, Where where = Where::here());
// Positions given row by row: positions [row] of index.
Tensor rope_at(const Tensor& x, const Tensor& positions, const Rope& options = {},
               Where where = Where::here());

} // namespace tang::models
