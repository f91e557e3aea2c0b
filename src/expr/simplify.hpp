// The normal form: polynomials over atoms, plus the exact facts about limits that the laws need.
// Every step is a refinement: it may only change a value that was NaN.
#pragma once
#include <map>
#include <optional>

#include "tang/expr/pool.hpp"

namespace tang::expr {

// What is known in the case at hand.
struct Facts {
  std::map<Id, int> rank;   // a strict order of some terms (one rank per term; equal terms were substituted)
  std::map<Id, bool> truth; // conditions taken as decided
};

// `exact` keeps to steps that hold for all values, NaN and inf included: needed below comparisons.
Id simplify(Pool& p, Id id, const Facts& facts = {}, bool exact = false);

// Positive for every finite value of its leaves? (literals, exp2, and sums, products and reciprocals of
// positives)
bool positive(const Pool& p, Id id);
// A number (neither inf nor NaN) whenever its leaves are numbers?
bool finite(const Pool& p, Id id);

// A number or NaN, never an infinity, whenever its leaves are numbers?
bool never_infinite(const Pool& p, Id id);

// The factors of a product as written, and their product (1 for none).
std::vector<Id> factors(const Pool& p, Id id);
Id product(Pool& p, const std::vector<Id>& factors);
// The terms of a sum as written.
std::vector<Id> addends(const Pool& p, Id id);

} // namespace tang::expr
