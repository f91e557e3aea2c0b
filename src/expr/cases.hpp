// Proof by order cases: rank variables among the literals they are compared with, substitute equals, compare
// normal forms.
#pragma once
#include "tang/expr/simplify.hpp"

namespace tang::expr {

// Terms replaced by representatives of their rank, and what is then known about those.
struct Case {
  std::map<Id, Id> replace;
  Facts facts;
};

// Every weak order of `terms` among the sorted literal `landmarks`; an end of the order may be closed by its
// landmark (the identity law makes the identity an end). 4 to 8 cases a variable, no search.
std::vector<Case> orders(const std::vector<Id>& terms, const std::vector<Id>& landmarks, bool bottom_closed,
                         bool top_closed);
// Each case of one with each case of the other.
std::vector<Case> joined(const std::vector<Case>& a, const std::vector<Case>& b);

// Equal normal forms in this case, splitting on conditions that stay undecided.
bool equal_in(Pool& p, Id a, Id b, const Case& c, int depth = 4);
bool equal_in(Pool& p, Id a, Id b, const std::vector<Case>& cases);

} // namespace tang::expr
