// What the terms of a fold dealt by rows are printed as: cheaper forms that hold for every monoid they name.
#pragma once
#include <optional>
#include <vector>

#include "tang/kernel/kernel.hpp"

namespace tang::emit {

struct FoldTerms {
  kernel::Fold fold; // each term without the condition of its row
  // Where it holds for a row, all terms of the one component are the identity, and so is their fold; asked once a row:
  //   fold of (c ? identity : t)  =  c ? identity : fold of t,  c the same for all terms.
  std::optional<expr::Id> empty;
  // The terms of a sum are powers of 2, each the square of 2^roots[0]. None is lost by it: where that root is below the least
  // normal number, its square is below half of the least number.
  bool power = false;
  std::vector<expr::Id> roots; // the terms that are evaluated, and the condition of the row
};

// `powers`: 2^h is one operation, where a number below the least normal one is 0.
FoldTerms fold_terms(kernel::Pool& p, const kernel::Fold& f, bool powers);

// By how much an index moves where `v` moves by one; nothing where that is not a number.
std::optional<int64_t> slope(const kernel::Pool& p, expr::Id id, kernel::Var v);

} // namespace tang::emit
