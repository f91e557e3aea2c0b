// What a node reads, under the support of what it reads. Private to expose_support.
#pragma once
#include "tang/rewrite/import.hpp"

namespace tang::rewrite {

// Where a port exists, beyond what its map's domain says.
struct Exists {
  Domain where = ir::everywhere(); // over its coordinates
  std::vector<Port> flags = {};    // bool arrays over its coordinates that are there everywhere
  std::optional<Port> flag = {};   // one that is there where the others hold
};

// Every use of a read that may miss stands under what tells that it does not: a value under a condition, a
// bound by an index that is read beside the index's own bounds (a bound whose index is absent does not hold),
// a read at such an index under the index's condition. True when the
// node changed.
bool expose_reads(Graph& to, Comp& n, const std::map<Port, Exists>& known);

} // namespace tang::rewrite
