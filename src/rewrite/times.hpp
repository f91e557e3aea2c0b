// Parts of a recurrence's time: its first steps, those after, and arrays that both filled.
#pragma once
#include <functional>

#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

// The step of `r` whose time, where anything reads it, is what `make` says of the step's own.
struct Stepped {
  Graph step;
  std::map<Port, Port> ports;
  NodeId time = 0;
};

Stepped with_time(const ir::Recur& r, const std::function<Id(Graph&, Comp&, Id)>& make);

// Makes all ports of a recurrence (final states, then emits) in some other way.
using Remade = std::function<Result<std::vector<Port>>(const ir::Recur&)>;

// The ports of `r`, of which `remade` makes the steps that fill segments of `block`; the others follow as a
// recurrence of their own: those of the highest times, or of the lowest in reverse.
Result<std::vector<Port>> in_segments(Graph& to, const ir::Recur& r, int64_t block, const Node& like,
                                      const Remade& remade);

// Why a recurrence has no segments of `block` steps; empty: it has.
std::string why_no_segments(const Graph& g, NodeId id, int64_t block);

std::vector<Form> every(size_t dims, int first = 0); // the view that takes dimension d at axis first + d
std::vector<Form> both(std::vector<Form> a, const std::vector<Form>& b); // one after the other
std::vector<ir::Extent> with_front(ir::Extent e, std::vector<ir::Extent> shape);

} // namespace tang::rewrite
