// The error of a term from the errors of its leaves. Private to the room.
#pragma once
#include <map>
#include <optional>

#include "tang/expr/build.hpp"
#include "tang/verify/bound.hpp"

namespace tang::verify {

using expr::Id;
using expr::Pool;

// The error of a read, of a monoid's operand or of a guard, by its number; what is not named is exact. Of a
// guard that is named also what of it is certain: it is false where that is.
struct Leaves {
  std::map<int64_t, Id> arg, var, holds, certain;
};

class ErrorTerms {
public:
  // `total`: every value exists, as in a monoid's combine.
  ErrorTerms(Pool& p, const Arithmetic& a, Leaves leaves, bool total = false)
      : p_(p), a_(a), leaves_(std::move(leaves)), total_(total) {}

  // Nothing: exact. It is a real: of a real term its absolute error, of others 0 or infinity. It exists where
  // the term does, or more.
  std::optional<Id> of(Id term);

private:
  using E = expr::E;
  std::optional<E> known(Id term);
  std::optional<E> computed(Id term, const expr::Term& t);
  std::optional<E> together(Id conjunction);
  std::optional<E> whole(Id term, const expr::Term& t);
  E branch(const expr::Term& t);
  E elementary(Id term, const expr::Term& t, E e);
  E rounded(Id value, E error, double relative);

  E at(double v) { return expr::lit(p_, v); }

  E value(Id id) { return {&p_, id}; }

  E error(Id id);

  Pool& p_;
  Arithmetic a_;
  Leaves leaves_;
  bool total_;
  std::map<Id, std::optional<Id>> memo_;
};

} // namespace tang::verify
