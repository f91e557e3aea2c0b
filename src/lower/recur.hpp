// A recurrence: its body's kernels run once a step, on temporaries and windows of outer arrays.
#pragma once
#include "tang/lower/frame.hpp"

namespace tang::lower {

void lower_recur(const ir::Recur& r, ir::NodeId node, const plan::Plan& outer, const Surroundings& around, const plan::Plan& body,
                 const schedule::Schedule& s, const target::Target& t, int step, int depth, Program& out);
// Every step of a plan, appended to the program.
void lower_steps(const plan::Plan& p, const Surroundings& around, const schedule::Schedule& s, const target::Target& t, int depth,
                 std::optional<int> as_step, Program& out);

}  // namespace tang::lower
