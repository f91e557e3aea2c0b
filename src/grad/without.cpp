// In place of what is apart (src/rooms.cmake), in programs that take no derivative forwards.
#include "tang/grad/tangent.hpp"

namespace tang::diff {

namespace {
[[noreturn]] void absent() { bug(__FILE__, __LINE__, "this program was linked without forward derivatives"); }
} // namespace

std::optional<Port> Tangents::of(Port) const { absent(); }

void Tangents::run() { absent(); }

} // namespace tang::diff
