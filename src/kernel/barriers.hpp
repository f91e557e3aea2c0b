// Where the lanes of a workgroup must meet: between statements of which one touches what another lane's share of the
// other wrote, or writes what it reads.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// `k` holds no Pipeline. Barriers are put before the first statement that needs one, along every path and around loops;
// barriers that are there are dropped first.
Kernel place_barriers(const Kernel& k);

}  // namespace tang::kernel
