// Products with few rows, on a target whose subgroups multiply small matrices: each workgroup has all rows and a few
// columns, so that there are enough of them.
#pragma once
#include "tang/lower/choose.hpp"

namespace tang::lower {
struct PricedChoice : Choice {
  double seconds = 0; // what the rule expects, as it does of tensor_choices; 0: nothing
};
// What a group of such products becomes, or nothing: another form is better, or the only one.
std::optional<PricedChoice> few_rows(ir::Graph& g, const plan::Plan& p, const plan::Group& group, const schedule::Schedule& s,
                                     const target::Target& t);
} // namespace tang::lower
