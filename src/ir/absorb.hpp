// Absorbing monoids: "fold the base, rescale, add". Decided on the combine graph alone (docs/semantics.md
// section 3).
#pragma once
#include "tang/ir/graph.hpp"

namespace tang::ir {

// base: the components that fold by themselves. Every other component c moves by
//   combine_c(x, y) = act_c(x_base, z_base) x_c + act_c(y_base, z_base) y_c,   z = combine(x, y),
// act[c] over var 2b (own base) and var 2b + 1 (new base). Sum is absorbing with an empty base and act 1.
struct Absorb {
  std::vector<int> base, added;
  std::map<int, Id> act;
};

Result<Absorb> absorbing(Pool& p, const Monoid& m);
// Of a monoid whose terms are the graph's: decided once, and kept with the graph and its copies.
const Result<Absorb>& absorbing(Graph& g, const Monoid& m);

// A combine that is a plain op of its two operands (sum: add, max: max, ..), whatever the monoid is called.
bool is_plain(const Pool& p, const Monoid& m, Op op);

} // namespace tang::ir
