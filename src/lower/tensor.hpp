// Groups whose sums become matrix instructions of warpgroups: a kernel in tensor form
// (kernel/roles_parts.hpp) and the roles that run it.
#pragma once
#include "tang/lower/group.hpp"

namespace tang::lower {

// Refused, with the reason, where the group's shape, its formats or sizes do not suit; nothing asks what it
// computes.
Result<GroupKernels> lower_tensor(ir::Graph& g, const plan::Plan& p, const Surroundings& around,
                                  const plan::Group& group, const schedule::Schedule& s,
                                  const target::Target& t, std::vector<int64_t>& temporaries);

} // namespace tang::lower
