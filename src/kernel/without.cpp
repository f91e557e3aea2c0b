// In place of what is apart (src/rooms.cmake), in programs for this CPU alone.
#include "tang/kernel/barriers.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/kernel/products.hpp"
#include "tang/kernel/rows.hpp"
#include "tang/kernel/windows.hpp"

namespace tang::kernel {

namespace {
[[noreturn]] void absent() { bug(__FILE__, __LINE__, "this program was linked without workgroups of many lanes"); }
} // namespace

Kernel place_barriers(const Kernel&) { absent(); }
Kernel distribute(const Kernel&, const target::Target&) { absent(); }
int64_t tile_bytes(const Kernel&, int64_t) { absent(); }
std::optional<Kernel> deal_products(const Kernel&, const target::Target&) { absent(); }
Teams teams(int64_t, int64_t, int, const target::Target&, bool) { absent(); }
Kernel hold_windows(const Kernel&) { absent(); }

} // namespace tang::kernel
