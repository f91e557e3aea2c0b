// What a graph costs if every node that must be stored is stored: kernels, arrays and their bytes.
// Conservative: the planner may share or group more.
#pragma once
#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

// Elements of an array; an unbounded symbol counts as a few thousand, so that sizes can be compared before
// binding.
double nominal_size(const std::vector<ir::Extent>& shape, const ir::Symbols& symbols);
double nominal_size(const Graph& g, Port p);
// Terms of all nodes, each evaluated once at each of its points; those of steps once a step.
double terms_of(const Graph& g);
// A sum of products over few terms that is cheaper evaluated in its readers' tiles than stored
// (ir/graph.hpp).
bool is_short_contraction(const Graph& g, NodeId fold);
// The fold that this map finishes point for point on the thread that holds the result: every other operand
// precedes it.
std::optional<NodeId> finished_fold(const Graph& g, NodeId map);

// A map of coordinates along several axes that costs more to evaluate than to read.
bool is_table(const Pool& p, const Comp& map);
// Would the reader evaluate a table of so many words several times over, and read more than it otherwise?
bool is_worth_a_table(const Graph& g, double words, const Comp& reader);

struct StoredArray {
  Port port;
  std::string name;
  std::vector<ir::Extent> shape;
  double bytes = 0; // nominal where extents are symbolic
};

struct Cost {
  int kernels = 0;                 // folds and maps that are no epilogue; short contractions do not count
  std::vector<StoredArray> stored; // written by a kernel, outputs among them
  double bytes() const;
};

Cost cost_of(const Graph& g);

} // namespace tang::rewrite
