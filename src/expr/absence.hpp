// Absence made explicit: where a body exists, and its value there.
#pragma once
#include "tang/expr/pool.hpp"

namespace tang::expr {

struct Present {
  Id when, value; // the body exists iff `when`, and then equals `value`
};

Present present(Pool& p, Id id);

inline Id yes(Pool& p) { return p.literal(truth(true)); }

Id both(Pool& p, Id a, Id b); // simplified
std::vector<Id> conjuncts(const Pool& p,
                          Id id); // of a conjunction, without literal true; in structural order
Id conjunction(Pool& p, const std::vector<Id>& parts);

} // namespace tang::expr
