// The instructions of sm_90a that role programs use, as functions.
#pragma once
#include <string>

#include "tang/expr/format.hpp"

namespace tang::emit {

std::string cuda_roles_prelude();

// A warpgroup's matrix instruction of `n` columns as a function: its name, and its text.
struct MatrixInstruction {
  int n;
  bool a_in_registers, a_k_major, b_k_major;
  expr::Format format;
};

std::string name(const MatrixInstruction& m);
std::string text(const MatrixInstruction& m);

} // namespace tang::emit
