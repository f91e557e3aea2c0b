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
// A run of sums by key from statement `from` on, with the tests that skip those of absent keys; how many
// statements that were, 0 where none begins there.
size_t print_keyed(Unit& u, const kernel::role::Block& b, size_t from);
void print_settle(Unit& u, const kernel::role::Settle& x);

} // namespace tang::emit
