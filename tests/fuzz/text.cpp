// libFuzzer: any bytes give a graph or diagnostics; a graph prints and reads back with the same hash.
#include <cstdint>
#include <cstdlib>

#include "tang/text/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string s(reinterpret_cast<const char*>(data), size);
  const tang::text::Reading r = tang::text::read(s, "fuzz.tang");
  if (r.graph.has_value() == !r.problems.empty()) std::abort();
  tang::text::render(r.problems, s, "fuzz.tang");
  if (!r.graph) return 0;
  const std::string printed = tang::text::print(*r.graph);
  const tang::text::Reading again = tang::text::read(printed, "printed.tang");
  if (!again.graph || tang::ir::hash(*again.graph) != tang::ir::hash(*r.graph)) std::abort();
  if (tang::text::print(*again.graph) != printed) std::abort();
  return 0;
}
