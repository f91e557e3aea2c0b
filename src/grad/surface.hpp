// Gradients of the surface language: ordinary tensors of the same graph.
//
//   Tensor loss = mean(cross_entropy(logits, target));
//   auto [dw, db] = grad<2>(loss, {w, b});        // or: std::vector<Tensor> d = grad(loss, {w, b});
#pragma once
#include <array>

#include "tang/grad/gradient.hpp"
#include "tang/ir/surface.hpp"

namespace tang::diff {

using ir::Tensor;

// d loss / d wrt: one tensor a requested one, of its shape. A tensor that the loss does not depend on gets
// zeros. `trace`, when given, receives what was prepared and which stabilizing maxima were eliminated.
// Throws Error: the loss is not one real number, tensors of several graphs, inside the step of a recurrence,
// or something that has no gradient, by name.
std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& wrt, Where where = Where::here(),
                         rewrite::Trace* trace = nullptr, const Options& options = {});

template <size_t N>
std::array<Tensor, N> grad(const Tensor& loss, const std::array<Tensor, N>& wrt,
                           Where where = Where::here()) {
  const std::vector<Tensor> d = grad(loss, std::vector<Tensor>(wrt.begin(), wrt.end()), where);
  std::array<Tensor, N> out;
  std::copy(d.begin(), d.end(), out.begin());
  return out;
}

// d (sum of y * dy) / d wrt, for `dy` of y's shape.
std::vector<Tensor> vjp(const Tensor& y, const Tensor& dy, const std::vector<Tensor>& wrt,
                        Where where = Where::here(), const Options& options = {});

struct Moved {
  Tensor tensor, tangent; // of one shape
};

// How `of` moves when each of `along` moves by its tangent: forward mode.
std::vector<Tensor> jvp(const std::vector<Tensor>& of, const std::vector<Moved>& along,
                        Where where = Where::here());

} // namespace tang::diff
