// What a step makes of one of its states, where that is affine: S' = g S + w r + c, with r = sum z S + y.
#pragma once
#include <set>

#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

// Ports of a step that depend on one of `from`.
std::set<Port> depending(const Graph& step, const std::set<Port>& from);

// A comprehension with each map that it reads and that depends on a state written out in it, so that what
// depends on a state is read as one of `leaves`. Refused where something else stands between.
Result<Comp> written_out(Graph& step, Comp n, const std::set<Port>& depends, const std::set<Port>& leaves);

// A term that is linear in some reads: what each is multiplied by, and what is left without them.
struct LinearTerm {
  std::map<int, Id> factor; // read -> term that mentions none of them
  Id rest = 0;              // the literal 0 where nothing is left
};

std::optional<LinearTerm> linear_in(Pool& p, Id term, const std::set<int>& reads);
std::set<int> reads_of(const Pool& p, const Comp& n, Id term, const std::set<Port>& ports);
bool is_zero(const Pool& p, Id term);

struct AffineStep {
  // The next state: a map over the state's dimensions. It reads the old state and the correction at most.
  Comp next;
  Id factor = 0, rest = 0; // g and c; the literal 0 where there is none
  std::vector<int> axes;   // of the state, along which g changes

  struct Correction { // r: a sum over some dimensions of the old state, at each place of the others
    Port port;
    Id weight = 0;           // w, a term of `next`
    Comp sum;                // its terms read the old state at picked axes
    Id factor = 0, rest = 0; // z and y, terms of `sum`
    std::vector<int> axis;   // dimension of the state -> axis of `sum` that picks it
    std::vector<int> dims;   // dimension of r -> dimension of the state
  };

  std::optional<Correction> correction;
};

// Decided by differentiation: the derivative with respect to the old state mentions no state.
// The step's pool grows.
Result<AffineStep> affine_step(Graph& step, const ir::Recur& r, size_t state);

} // namespace tang::rewrite
