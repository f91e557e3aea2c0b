// A loop cut into quotient and remainder by the stride it meets (private to the room).
#pragma once
#include "tang/bound/traffic.hpp"

namespace tang::bound {

struct Split {
  int quotient = 0, remainder = 0; // loops
  int64_t extent = 0, by = 1;      // of the loop that was cut
};

struct Prepared {
  Nest nest;
  std::vector<Split> splits;
  std::vector<std::string> notes;
};

Prepared prepare(const Nest& n);

} // namespace tang::bound
