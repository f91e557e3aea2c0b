// A recurrence as a person writes it: a time axis, states, and a step that turns old states into next ones
// and emits.
//
//   Axis t = axis("t", steps), u = axis("u", Extent(64)), k = axis("k", Extent(64));
//   Recurred r = recur(t, {carried("h", h0)}, [&](const std::vector<Tensor>& old) -> Step {
//     Tensor h = old[0];
//     Tensor next = map({u}, tanh(x(t, u) + sum(k, w(u, k) * h(k))));
//     return {{next}, {next}};                 // r.states[0]: [u], the last; r.emits[0]: [t, u]
//   });
//
// Inside the step, tensors of the graph around it are read as ever. A coordinate that mentions t picks the
// part that this time needs (t, n - 1 - t, C t + i); one that mixes t with more reads the whole dimension.
#pragma once
#include <functional>
#include <optional>

#include "tang/ir/surface.hpp"

namespace tang::ir {

struct Carried {
  std::string name;
  std::optional<Tensor> init; // none: zeros of `shape`
  std::vector<Extent> shape = {};
  Format format = Format::f32;
};

Carried carried(std::string name, const Tensor& init);
Carried carried(std::string name, std::vector<Extent> shape, Format format = Format::f32); // zeros

// What one time leaves behind: `value` (a tensor of the step, an old state too) at [t, its dimensions..], or
// at the coordinates `at`, forms of t and of `dims` (an axis for each dimension of the value), of an array of
// `shape`.
struct Emitted {
  Tensor value;
  std::vector<Axis> dims = {};
  Coords at = {};
  std::vector<Extent> shape = {};

  Emitted(Tensor v) : value(v) {}

  Emitted(Tensor v, std::vector<Axis> d, Coords a, std::vector<Extent> s)
      : value(v), dims(std::move(d)), at(std::move(a)), shape(std::move(s)) {}
};

struct Step {
  std::vector<Tensor> next; // one a state, of its shape and type
  std::vector<Emitted> emits;
};

struct Recurring {
  bool reverse = false;      // time runs from the last to the first
  std::optional<Guard> live; // over t: where it fails the states are kept and nothing is emitted
};

struct Recurred {
  std::vector<Tensor> states; // after the last time
  std::vector<Tensor> emits;
};

// Throws Error: t has no extent, next states of another number, shape or type than the states, states of
// several graphs.
Recurred recur(const Axis& t, const std::vector<Carried>& states,
               const std::function<Step(const std::vector<Tensor>&)>& step, const Recurring& options = {},
               Where where = Where::here());

} // namespace tang::ir
