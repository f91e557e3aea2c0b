// The simplifier's facts as data: what each rewriting step rests on, for the proofs and for the test that it
// is performed.
#pragma once
#include <string>
#include <vector>

#include "tang/expr/build.hpp"
#include "tang/expr/simplify.hpp"

namespace tang::expr {

// What a fact's variable ranges over (proofs/export/term.v).
enum class Kind : uint8_t { real, finite, index, boolean, partial };
const char* name(Kind k);

struct Fact {
  enum Strength : uint8_t {
    exact,
    algebraic
  }; // equal for all values; equal wherever the left side is not NaN

  enum By : uint8_t {
    simplifier,
    present
  }; // simplify(left) == simplify(right); or the split into existence and value

  std::string name;
  Strength strength = exact;
  std::vector<Kind> kinds;  // of var 0, 1, ..
  std::vector<Id> premises; // booleans that hold: what the caller's `Facts` say
  Id left = 0, right = 0;
  By by = simplifier;
};

// Every fact that simplify() and present() use, in the order of simplify.cpp.
std::vector<Fact> facts(Pool& p);
// The premises as the simplifier takes them: `less` of two variables is a rank, another boolean a decided
// condition.
Facts given(const Pool& p, const Fact& f);

} // namespace tang::expr
