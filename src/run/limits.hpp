// For targets that bind few memories, each at one place, and whose workgroups have little.
#pragma once
#include "tang/lower/lower.hpp"

namespace tang::run {

// Arguments that lie in one place become one: a donated state and its new value. Throws Error where they are laid out
// otherwise.
void merge_places(const plan::Plan& p, lower::Lowered& l);
// Where a kernel names more memories than the target binds: the temporaries of one format lie in one allocation, and
// kernels name it once.
void pool_temporaries(lower::Program& p);
// What a step's kernels evaluate again for themselves is stored instead, so that their tiles take less; false: there is
// nothing more of that.
bool store_shared(const plan::Plan& p, const plan::Step& step, schedule::Schedule& s);
// Throws Error: a user's 64-bit integers could be anything, and the target has none.
void refuse_wide_inputs(const ir::Graph& g, const target::Target& t);

} // namespace tang::run
