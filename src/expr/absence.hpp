// Absence made explicit: where a body exists, and its value there.
#pragma once
#include <functional>

#include "tang/expr/pool.hpp"

namespace tang::expr {

struct Present {
  Id when, value; // the body exists iff `when`, and then equals `value`
};

// Reads are taken for present, but for those of which `may_miss` says otherwise: an or_else around one stays.
using MayMiss = std::function<bool(Id)>;
Present present(Pool& p, Id id, const MayMiss& may_miss = {});

inline Id yes(Pool& p) { return p.literal(truth(true)); }

// Simplified, but for what reads may miss: a step that drops a read would drop its absence.
Id both(Pool& p, Id a, Id b, const MayMiss& may_miss = {});
std::vector<Id> conjuncts(const Pool& p,
                          Id id); // of a conjunction, without literal true; in structural order
Id conjunction(Pool& p, const std::vector<Id>& parts, const MayMiss& may_miss = {});

} // namespace tang::expr
