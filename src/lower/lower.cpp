#include "tang/lower/lower.hpp"

#include "tang/lower/group.hpp"

namespace tang::lower {

Program lower(const plan::Plan& p, const schedule::Schedule& s, const target::Target& t) {
  Program out;
  ir::Graph g = *p.graph;  // lowering splits absence from values in the graph's pool; the plan's graph stays as it is
  for (size_t k = 0; k < p.steps.size(); ++k) {
    const plan::Step& step = p.steps[k];
    check(!step.recur, "a recurrence is lowered by lower_recur");
    GroupKernels made = lower_group(g, p, step.group, s, t, out.temporaries);
    std::string label;
    for (auto& m : step.group.members) label += (label.empty() ? "" : "+") + g.label({m.node, 0});
    for (auto& b : made.before) {
      b.step = int(k);
      b.label = label + " operand";
      out.kernels.push_back(std::move(b));
    }
    made.main.step = int(k);
    made.main.label = label;
    out.kernels.push_back(std::move(made.main));
  }
  return out;
}

}  // namespace tang::lower
