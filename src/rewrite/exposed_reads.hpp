// What a node reads, under the support of what it reads. Private to expose_support.
#pragma once
#include "tang/rewrite/import.hpp"

namespace tang::rewrite {

// Every use of a read that may miss stands under what tells that it does not: a value under a condition, a
// bound by an index that is read beside the index's own bounds (a bound whose index is absent does not hold),
// a read at such an index under the index's condition. `flags`: ports that no domain describes -> the bool
// port beside each. True when the node changed.
bool expose_reads(Graph& to, Comp& n, const std::map<Port, Port>& flags);

} // namespace tang::rewrite
