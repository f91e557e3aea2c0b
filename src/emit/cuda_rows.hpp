// Statements over fragments as CUDA: a lane's registers of a tile, row factors once a row.
#pragma once
#include "tang/emit/c_kernel.hpp"
#include "tang/kernel/roles.hpp"

namespace tang::emit {

// How many registers of a lane a fragment takes, and how they are declared.
std::string declare_fragment(const Unit& u, int memory);
// Declares a row's number and its digits.
void print_row(Unit& u, const kernel::role::RowAxes& row, const std::string& value);
void print_rows(Unit& u, const kernel::role::Rows& x);
void print_settle(Unit& u, const kernel::role::Settle& x);
// The statement's values in the destination's format: uint32_t NAME[columns / 4] of pairs, or float
// NAME[columns / 2].
std::string print_values(Unit& u, const kernel::role::Flush& x);

} // namespace tang::emit
