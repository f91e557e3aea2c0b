// What a comprehension touches, as data: loops with integer extents, live points, and a linear map for each
// array.
#pragma once
#include "tang/ir/graph.hpp"

namespace tang::bound {

using Row = std::vector<int64_t>; // one coordinate: a coefficient for each loop

struct Array {
  std::string name;
  int tensor = 0;        // arrays of one tensor may share the elements they touch
  int64_t weight = 1;    // units an element takes: bytes or words; of an output: the state of one point
  std::vector<Row> rows; // the linear part; offsets change no cardinality
  bool output = false;
  ir::Domain guard = ir::everywhere(); // touched only where this holds
  bool gathered = false;               // some coordinates are looked up: `rows` has the others
  int64_t keys = 1;                    // of a gather: rows that are known to be different
  std::vector<int> keyed_by;           // of a gather: the loops that the looked-up coordinates move with
};

struct Nest {
  std::string name;
  std::vector<std::string> axes;
  std::vector<int64_t> extents;
  std::vector<Array> arrays;
  ir::Domain domain = ir::everywhere(); // the live points

  int loops() const { return int(extents.size()); }
};

Row pick(const Nest& n, int axis);

// How an element is weighed.
enum class Unit { bytes, words };
// Distinct rows of gathered tensors that are known (from index data, or expected), by the tensor's name.
using Keys = std::map<std::string, int64_t>;

// One comprehension as it stands: all its operands are arrays in slow memory.
Result<Nest> nest_of(const ir::Graph& g, ir::NodeId id, Unit unit = Unit::bytes, const Keys& keys = {});
// A chain of contractions: folds that `id` reads and that are larger than what they read are evaluated inside
// its body, once for each point of their own loops; all other loops of either are whole rows of the arrays.
Result<Nest> chained_nest_of(const ir::Graph& g, ir::NodeId id, Unit unit = Unit::bytes,
                             const Keys& keys = {});

} // namespace tang::bound
