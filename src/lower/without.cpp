// In place of what is apart (src/rooms.cmake), in programs for this CPU alone.
#include "tang/lower/few_rows.hpp"
#include "tang/lower/tensor.hpp"

namespace tang::lower {

namespace {
[[noreturn]] void absent() { bug(__FILE__, __LINE__, "this program was linked without matrix instructions"); }
} // namespace

std::optional<PricedChoice> few_rows(ir::Graph&, const plan::Plan&, const plan::Group&, const schedule::Schedule&, const target::Target&) {
  absent();
}
Result<GroupKernels> lower_tensor(ir::Graph&, const plan::Plan&, const Surroundings&, const plan::Group&, const schedule::Schedule&,
                                  const target::Target&, std::vector<int64_t>&) {
  absent();
}

} // namespace tang::lower
