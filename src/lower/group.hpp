// The statements of one group: shared subterms, members by form, epilogues, and the loops around them.
#pragma once
#include "tang/lower/frame.hpp"

namespace tang::lower {

struct GroupKernels {
  std::vector<Lowered> before;  // packed copies
  Lowered main;
  std::vector<Lowered> after;   // joins of partial results
};
// `temporaries` grows by the packed copies' sizes in bytes.
GroupKernels lower_group(ir::Graph& g, const plan::Plan& p, const Surroundings& around, const plan::Group& group, const schedule::Schedule& s,
                         const target::Target& t, std::vector<int64_t>& temporaries);

}  // namespace tang::lower
