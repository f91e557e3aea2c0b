// Blocks that fit a workgroup's own memory.
#pragma once
#include <functional>

#include "tang/lower/choose.hpp"

namespace tang::lower {

// Halves blocks, each time the one that saves most, until `bytes` of the choice is at most `limit` or nothing helps.
// Blocks of more than a register block stay whole register blocks, blocks of
// panels whole panels.
Choice fit(Choice c, const plan::Group& group, int64_t limit, const std::function<int64_t(const Choice&)>& bytes);

}  // namespace tang::lower
