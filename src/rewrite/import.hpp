// Import: moves reads, guards and bodies of one comprehension into another through a map of axes. Nearly
// every rule is this move plus a side condition.
#pragma once
#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

class Import {
public:
  using At = std::function<Form(int)>;

  // `at`: an axis of `from` as a form over the axes and reads of `to`. Both nodes read the same graph.
  Import(Pool& pool, const Comp& from, Comp& to, At at)
      : pool_(pool), from_(from), to_(to), at_(std::move(at)) {}

  int take(int arg); // a read of `from` as a read of `to`; reads of its view come along
  Form form(const Form& f);
  Domain domain(const Domain& d);
  Id guard(const Domain& d); // the leaf of `to` that says whether d, already over `to`, holds
  Id body(Id term);

  const std::string& why() const { return why_; } // not empty: something had no form here

private:
  Pool& pool_;
  const Comp& from_;
  Comp& to_;
  At at_;
  std::map<int, int> taken_;
  std::string why_;
};

int add_read(Comp& to, const Arg& a); // its number; an equal read is shared
Id add_guard(Pool& p, Comp& to, const Domain& d);

inline Id read_leaf(Pool& p, Type t, int arg) { return p.leaf(Op::arg, t, arg); }

// Where the point axes of a port are read by `a`: axis of the source -> form of the view. Axes the port lacks
// are absent.
std::map<int, Form> picked_axes(const Comp& source, const Arg& a);
// The value of an index form as a term; nothing when its constant is symbolic.
std::optional<Id> as_term(Pool& p, const Form& f);
// Splices `source`, a map that `a` reads, into `to`: the body, absent outside the source's domain.
Result<Id> spliced(Pool& p, const Comp& source, const Arg& a, Comp& to, const ir::Symbols& symbols);

} // namespace tang::rewrite
