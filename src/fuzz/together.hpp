// One compilation for all programs of a batch.
#pragma once
#include "tang/run/program.hpp"

namespace tang::fuzz {

// The backend with the kernels of `all` compiled beforehand, in one text: of a small case a compiler's start
// is most of what it costs. As it was, where a target takes one text a kernel or refuses the whole.
run::Backend together(const run::Backend& b, const std::vector<const run::Derivation*>& all);

} // namespace tang::fuzz
