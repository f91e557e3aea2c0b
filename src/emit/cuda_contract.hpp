// A contraction in CUDA: what it shares with the rest of the printer.
#pragma once
#include "tang/emit/c_kernel.hpp"

namespace tang::emit {

int64_t points(const std::vector<TileAxis>& axes);
void print_cuda_contract(Unit& u, const kernel::Contract& c);

} // namespace tang::emit
