// Parts of a loop that become one sum, as CUDA C++.
#pragma once
#include <functional>

#include "tang/emit/c_body.hpp"
#include "tang/kernel/roles.hpp"

namespace tang::emit {

// In memory. `at`: the named barrier of this team, and its lanes.
void print_join(Unit& u, const kernel::role::Program& p, const kernel::role::Join& j, const std::string& at,
                const std::function<void()>& then);

// In the shared memory of a cluster, where `slot` is the address of a workgroup's part.
void print_offer(Unit& u, const kernel::role::Program& p, const kernel::role::Offer& x, const std::string& slot);
void print_share(Unit& u, const kernel::role::Program& p, const kernel::role::Join& j, const std::string& slot,
                 const std::function<void()>& then);

} // namespace tang::emit
