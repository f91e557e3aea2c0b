// In place of what is apart (src/rooms.cmake), in programs for this CPU alone.
#include "tang/run/limits.hpp"
#include "tang/run/matrices.hpp"

namespace tang::run {

namespace {
[[noreturn]] void absent() { bug(__FILE__, __LINE__, "this program was linked for this CPU alone"); }
} // namespace

void merge_places(const plan::Plan&, lower::Lowered&) { absent(); }
void pool_temporaries(lower::Program&) { absent(); }
void refuse_wide_inputs(const ir::Graph&, const target::Target&) { absent(); }
bool store_shared(const plan::Plan&, const plan::Step&, schedule::Schedule&) { absent(); }
ir::Graph for_matrices(ir::Graph, const Options&) { absent(); }
void store_operands(ir::Graph&, ir::Format, schedule::Schedule&) { absent(); }

} // namespace tang::run
