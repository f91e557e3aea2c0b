// Lanes of a role program that add their elements of a fragment to a global.
#pragma once
#include "tang/emit/c_body.hpp"
#include "tang/kernel/roles.hpp"

namespace tang::emit {

void print_add(Unit& u, const kernel::role::Add& x);

} // namespace tang::emit
