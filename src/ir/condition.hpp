// Conditions of bodies as bounds, and what sorted keys say about them.
#pragma once
#include <optional>
#include <set>

#include "tang/ir/graph.hpp"

namespace tang::ir {

// A condition as bounds, where it is a conjunction of comparisons of affine index values; nothing otherwise.
std::optional<Conj> as_bounds(const Graph& g, Id condition);

// The axes that a form moves with, through the reads it uses.
void moving(const Comp& c, const Form& f, std::set<int>& out);

// The axis of `n` along which read `arg` is a key that never decreases: the last dimension of an input that
// was declared sorted, at a row that does not move with that axis. Nothing for any other read.
std::optional<int> sorted_along(const Graph& g, const Comp& n, int arg);

// Is the node how many keys of a sorted row lie below a limit? Its one component adds terms of one fold axis
// that are 1 up to some term and 0 from there on, so that halving finds the number.
bool counts_sorted_keys(const Graph& g, const Comp& n);

} // namespace tang::ir
