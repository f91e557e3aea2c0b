// Small edits of a recurrence's step graph.
#pragma once
#include "tang/grad/linear.hpp"

namespace tang::diff {

// A fresh real input; the name is made unique.
NodeId add_input(Graph& g, const std::string& name, const std::vector<Extent>& shape, ir::Input::Kind kind);
Port zeros(Graph& g, const std::vector<Extent>& shape);
// `r` runs `step` (whose ids it uses), rebuilt: operands first, only what next states and emits need.
void settle(ir::Recur& r, const Graph& step);
// The step's inputs that the recurrence's next states and emits need.
std::set<NodeId> inputs_used(const Graph& step, const ir::Recur& r);

} // namespace tang::diff
