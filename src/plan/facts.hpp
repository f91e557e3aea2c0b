// What planning asks about single nodes (private to the room): how much a node reads, which monoids only add.
#pragma once
#include <set>

#include "tang/ir/condition.hpp"
#include "tang/plan/plan.hpp"

namespace tang::plan {

int64_t volume(const std::vector<ir::Extent>& shape);           // bound; saturates
int64_t count(const ir::Comp& c, const std::vector<int>& axes); // points of these axes
int64_t points(const ir::Comp& c);
int64_t terms(const ir::Comp& c); // points x folds
std::string label(const ir::Graph& g, NodeId id);

// Every component adds: partial results may be added in any order, to a place that holds zero.
bool is_sum(const ir::Graph& g, const ir::Comp& c);
// Point axes that every component has: the only ones that may be spread over workgroups.
std::vector<char> common_axes(const ir::Comp& c);

using ir::moving;
// Reads of `c` that a view or a bound uses: their values are needed before the term is.
std::vector<char> uniforms(const ir::Comp& c);
// Elements of the source that a read touches: each at most once, a gather its rows at most once each.
int64_t touched(const ir::Graph& g, const ir::Comp& c, const ir::Arg& a);
// Axis d of the reader is coordinate d of the source: the read is at the reader's own point.
bool at_own_point(const ir::Comp& c, const ir::Arg& a);

} // namespace tang::plan
