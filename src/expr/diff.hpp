// Symbolic derivatives of scalar graphs.
#pragma once
#include <optional>

#include "tang/expr/pool.hpp"

namespace tang::expr {

// d id / d x for a real leaf x. A select stays a select (the branch not taken contributes nothing, not 0 *
// inf); max and min gate to the operand that wins, a tie to the number (relu'(0) = 0), to x before -x
// (|x|'(0) = 1), else to the first in structural order; comparisons and floor have derivative 0.
Id differentiate(Pool& p, Id id, Id x);

// The derivative of `id` when each leaf of `along` moves by its term. A term stands only where its leaf does:
// in the branch taken, under the same guard.
Id directional(Pool& p, Id id, const std::map<Id, Id>& along);

// The derivative where `id` is linear in x as written: nothing when a condition, max, min or another curved
// op reads x.
std::optional<Id> linear_factor(Pool& p, Id id, Id x);

// Does `id` read the leaf x?
bool reads(const Pool& p, Id id, Id x);

} // namespace tang::expr
