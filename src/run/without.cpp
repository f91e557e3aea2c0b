// In place of what is apart (src/rooms.cmake), in programs for this CPU alone.
#include "tang/run/matrices.hpp"

namespace tang::run {

namespace {
[[noreturn]] void absent() { bug(__FILE__, __LINE__, "this program was linked without matrix instructions"); }
} // namespace

ir::Graph for_matrices(ir::Graph, const Options&) { absent(); }
void store_operands(ir::Graph&, ir::Format, schedule::Schedule&) { absent(); }

} // namespace tang::run
