// A fold of products on instructions that multiply small matrices (kernel/products.hpp), in CUDA.
#pragma once
#include "tang/emit/c_kernel.hpp"
#include "tang/emit/dialect.hpp"

namespace tang::emit {
void print_product(Unit& u, const GpuDialect& d, const kernel::Fold& f);
} // namespace tang::emit
