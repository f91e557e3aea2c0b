// Statements whose points are dealt by rows to teams of lanes (kernel::Deal), in dialects that are spelled like C.
#pragma once
#include "tang/emit/c_kernel.hpp"
#include "tang/emit/dialect.hpp"

namespace tang::emit {

void print_rows(Unit& u, const GpuDialect& d, const kernel::Stmt& s);
void print_row_fold(Unit& u, const GpuDialect& d, const kernel::Fold& f);
// Declarations of the tiles that lie in registers: each lane's part.
std::string row_registers(const kernel::Kernel& k, const GpuDialect& d);

} // namespace tang::emit
