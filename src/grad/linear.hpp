// A comprehension linearised: how much each of its reads moves each of its ports, as a comprehension of the
// same shape. Reverse mode pulls seeds back along it, forward mode pushes tangents through it.
#pragma once
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::diff {

using ir::Comp;
using ir::Domain;
using ir::Extent;
using ir::Form;
using ir::Graph;
using ir::Id;
using ir::NodeId;
using ir::Op;
using ir::Pool;
using ir::Port;
using ir::Type;

// What has no gradient, by name; becomes the Refusal of `gradient` and `jvp`.
struct Refused {
  std::string why;
};

// d port = sum over the fold axes of `at` of (sum of factor * d value).
struct Linear {
  struct Part {
    Id factor, value; // both over `at`; the value is a component of the term
  };

  Comp at; // the axes of the port, then the folds; its domain is where terms exist. It has no lift.
  bool map = false;
  ir::Out out; // where the points of `at` lie in the port
  Id when = 0; // a term exists only where this holds, besides the domain
  std::vector<Part> parts;
};

// Component `c` of comprehension `id`. May append nodes to `g`: an arg-max for max and min (NaN first, ties
// to the smallest coordinates), prefix and suffix folds for any other monoid. Throws Refused.
Linear linearise(Graph& g, NodeId id, size_t c);
// d port / d read, for each read that `moves`.
std::map<int, Id> coefficients(Pool& p, const Linear& l, const std::function<bool(Port)>& moves);
// a * b without ones and with its literals in one.
Id product(Pool& p, Id a, Id b);

// Does component `c` see the combine of others, or is it folded by this operation alone?
bool folds_alone(const Pool& p, const Comp& n, size_t c, Op op);
ir::Monoid sum_monoid(Pool& p);
std::vector<Form> here(size_t axes); // the view that reads coordinate d at axis d
Id read_at(Graph& g, Comp& n, Port from, std::vector<Form> view);
ir::Out every_axis(size_t axes);

} // namespace tang::diff
