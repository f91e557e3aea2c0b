// What is known about integer variables at a place of a kernel, and proofs that an affine form is never
// negative.
#pragma once
#include <map>
#include <set>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// Values congruent to `rest` modulo `by`; by 0: exactly `rest`; by 1: nothing known.
struct Residue {
  int64_t by = 1, rest = 0;
};

class Facts {
public:
  // A variable, in order of definition; an open end is not bounded.
  void define(Var v, std::optional<int64_t> low, std::optional<int64_t> high, Residue residue = {});
  void assume(const Affine& e);                          // e >= 0
  void one_of(Var v, const std::vector<Affine>& values); // v equals one of these

  bool defined(Var v) const { return order_.count(v) != 0; }

  // e >= 0 in every state: boxes, sums of assumptions with positive factors, and cases. Sound, not complete.
  bool proves(const Affine& e) const;
  bool impossible() const; // the assumptions contradict each other: the place is not reached
  std::optional<int64_t> low(const Affine& e) const; // of the boxes alone
  std::optional<int64_t> high(const Affine& e) const;
  Residue residue(const Affine& e) const;
  bool multiple(const Affine& e, int64_t of) const;

  // Two states at once: the variables of `other` outside `shared` are renamed by `offset`.
  Facts beside(const Facts& other, const std::set<Var>& shared, int offset) const;
  // What stays the same when the variables of `fixed` do: they, and what is computed from them alone.
  std::set<Var> determined_by(const std::set<Var>& fixed) const;

private:
  struct Box {
    Var var;
    std::optional<int64_t> low, high;
    Residue residue;
  };

  bool prove(Affine e, int depth, int& budget) const;
  std::vector<Box> boxes_;
  std::map<Var, size_t> order_;
  std::vector<Affine> assumed_;
  std::map<Var, std::vector<Affine>> cases_;
};

Affine renamed(const Affine& a, const std::set<Var>& shared, int offset);
// The facts inside a loop over v = begin, begin + step, .. below end.
void define_loop(Facts& f, Var v, const Affine& begin, const Affine& end, int64_t step);
void define_let(Facts& f, const Let& x, const Kernel& k);

} // namespace tang::kernel
