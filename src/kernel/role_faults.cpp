#include "tang/kernel/simulate_roles.hpp"

namespace tang::kernel {

const char* word(RoleFault::Kind k) {
  constexpr const char* words[] = {"early",     "overwritten", "unfinished", "unsettled",
                                   "uncounted", "outside",     "stuck"};
  return words[k];
}

} // namespace tang::kernel
