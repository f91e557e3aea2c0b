// What a role program without roles has of its own: copies of all lanes, products of subgroups, blocks of 16 rows.
#pragma once
#include <functional>

#include "tang/emit/c_body.hpp"
#include "tang/kernel/roles.hpp"

namespace tang::emit {

std::string cuda_subgroups_prelude(); // the instructions of sm_80, as functions

int resident_subgroups(const target::Roles& f); // workgroups a processor, by registers
void print_subgroup(Unit& u, const kernel::role::Program& p); // which this lane is in, and its place there

// A subgroup has its fragments in blocks of 16 rows; `print` once for each, in which these tiles have the block's.
void each_row_block(Unit& u, const kernel::role::Program& p, const std::vector<int>& tiles,
                    const std::function<void()>& print);
std::string declare_row_blocks(const Unit& u, const kernel::role::Program& p, int memory);

// `to`: where the box begins in shared memory.
void print_copy(Unit& u, const kernel::role::Program& p, const kernel::role::Load& x, const std::string& to);
// `a`, `b`: where the windows begin.
void print_product_of_subgroup(Unit& u, const kernel::role::Program& p, const kernel::role::Issue& x, const std::string& a,
                               const std::string& b);
void print_flush_by_lanes(Unit& u, const kernel::role::Program& p, const kernel::role::Flush& x);

void print_let(Unit& u, const kernel::Let& x); // of a role program, in 32 bits

} // namespace tang::emit
