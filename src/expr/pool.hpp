// Scalar graphs: a hash-consed arena of terms. Equal terms share an id; operands come before users.
#pragma once
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tang/expr/op.hpp"

namespace tang::expr {

using Id = uint32_t;

struct Term {
  Op op{};
  Type type{};
  std::array<Id, 3> args{};
  double r = 0;      // literal of type real, bit-exact
  int64_t whole = 0; // literal of another type, or which leaf
  uint64_t hash = 0; // structural: of the leaves' numbers, never of ids

  int arity() const { return expr::arity(op); }
};

class Pool {
public:
  const Term& operator[](Id id) const { return terms_[id]; }

  size_t size() const { return terms_.size(); }

  Id literal(const Value& v);

  Id literal(double r) { return literal(real(r)); }

  Id number(double v, Type type); // the literal `v` in that type
  Id leaf(Op op, Type type, int64_t number);
  // Checks arity and operand types against the op table; a mismatch is an Error that names both.
  Id make(Op op, const Id* operands, size_t count);

  Id make(Op op, const std::vector<Id>& operands) { return make(op, operands.data(), operands.size()); }

  Id make(Op op, std::initializer_list<Id> operands) { return make(op, operands.begin(), operands.size()); }

  // The term `id` over other operands: itself, where they are its own.
  Id over(Id id, const std::array<Id, 3>& operands);

  // Structural order of two terms, the same on every run: used wherever an order decides an output.
  bool before(Id a, Id b) const;
  std::string print(Id id) const;

private:
  Id intern(Term t);
  void spread(); // twice the slots
  std::vector<Term> terms_;
  std::vector<Id> slots_; // open addressing by hash; 1 + a term, 0 where there is none
};

// Replaces terms (usually leaves) by others, bottom up.
Id substitute(Pool& p, Id id, const std::map<Id, Id>& to);
// Rebuilds `id`, whose terms live in `from`, inside `to`; leaves go through `leaf`.
Id transplant(const Pool& from, Id id, Pool& to, const std::function<Id(const Term&)>& leaf);
// The distinct subterms of `id` that have this op.
std::set<Id> subterms(const Pool& p, Id id, Op op);
void subterms(const Pool& p, Id id, Op op, std::set<Id>& out);
// All distinct subterms of the roots, operands before users, in an order that depends on structure alone.
std::vector<Id> schedule(const Pool& p, const std::vector<Id>& roots);
std::vector<Id> schedule(const Pool& p, Id root);

// Evaluates one term; `leaf` answers var, coord, arg and holds.
using Leaf = std::function<Value(const Term&)>;
Value evaluate(const Pool& p, Id id, const Leaf& leaf);

} // namespace tang::expr
