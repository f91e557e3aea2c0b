// Symbolic derivatives of scalar graphs.
#pragma once
#include <optional>

#include "tang/expr/pool.hpp"

namespace tang::expr {

// d id / d x for a real leaf x. A select stays a select (the branch not taken contributes nothing, not 0 *
// inf); max and min gate to the operand that wins, ties to the first; comparisons and floor have derivative
// 0.
Id differentiate(Pool& p, Id id, Id x);

// The same where `id` is linear in x as written: nothing when a condition, max, min or another curved op
// reads x.
std::optional<Id> linear_factor(Pool& p, Id id, Id x);

// Does `id` read the leaf x?
bool reads(const Pool& p, Id id, Id x);

} // namespace tang::expr
