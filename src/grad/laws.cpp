#include "tang/grad/laws.hpp"

namespace tang::diff {

const std::vector<GradientLaw>& laws() {
  static const std::vector<GradientLaw> table{
      {"linear",
       "derivative_of_a_body",
       {"a body moves by its symbolic derivative times what its reads move by", "diff_sound",
        rewrite::Law::algebraic}},
      {"pull",
       "gradient_along_a_read",
       {"what flows back along a read is a sum over the reader's points, gated where the view hits",
        "gradient_of_sum", rewrite::Law::algebraic}},
      {"pull",
       "gradient_along_picks",
       {"coordinates that a view picks are renamed, the others are summed", "gradient_pick",
        rewrite::Law::algebraic}},
      {"linear",
       "gradient_of_an_extreme",
       {"of a max or min only the term that wins moves", "gradient_of_max", rewrite::Law::algebraic}},
      {"linear",
       "gradient_of_any_monoid",
       {"a fold is (terms before . term) . terms after, its combine differentiated twice",
        "unproved: the chain rule of a combine of several components; compared with differences and forward "
        "mode",
        rewrite::Law::algebraic}},
      {"degree",
       "no_gradient_of_a_stabilizing_max",
       {"what every root is free of has no gradient: adding c(row) to this fold multiplies each node by 2^(d "
        "c) or adds "
        "d c, and d is 0 at the roots",
        "zero_gradient_of_max", rewrite::Law::algebraic}},
      {"adjoint",
       "adjoints_add_up",
       {"what flows back along several reads of a value is added", "gradient_of_sum",
        rewrite::Law::algebraic}},
      {"recurrence",
       "adjoint_of_a_recurrence",
       {"the adjoint of a recurrence runs the other way over its old states",
        "unproved: the chain rule over time; compared with differences, forward mode and the unrolled "
        "recurrence",
        rewrite::Law::algebraic}},
      {"step",
       "gradient_in_a_step",
       {"the step of a recurrence is differentiated as a graph of its own",
        "unproved: it adds no law, the step's nodes follow the laws above", rewrite::Law::algebraic}},
      {"tangent",
       "forward_mode",
       {"a tangent is pushed along the linear form that adjoints are pulled along",
        "unproved: no statement of forward mode yet; compared with reverse mode and differences",
        rewrite::Law::algebraic}},
      {"gradient",
       "gradient",
       {"adjoints from the last node to the first", "unproved: it adds no law, it orders the steps above",
        rewrite::Law::algebraic}},
      {"surface",
       "grad_of_a_tensor",
       {"gradients asked for by name", "unproved: it adds no law, it calls `gradient`",
        rewrite::Law::algebraic}},
  };
  return table;
}

const rewrite::Law& law_of(const std::string& name) {
  for (auto& row : laws())
    if (row.name == name) return row.law;
  bug(__FILE__, __LINE__, "no law of this name");
}

} // namespace tang::diff
