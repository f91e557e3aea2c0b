// The order in which blocks of lanes walk a node's points. The axis along which neighbouring lanes differ is
// the one that least of the body depends on: what is one value for all lanes is computed once.
#pragma once
#include <cstdint>
#include <vector>

#include "tang/ir/graph.hpp"

namespace tang::eval {

struct Walk {
  std::vector<int> axes;        // point axes, the last moves fastest
  std::vector<int64_t> extents; // of those
  std::vector<int64_t> strides; // of the stored port, whose axes are in another order
  int64_t rows = 1, inner = 1;  // blocks stay within a row where it is long enough
  int64_t pieces = 0, size = 0; // blocks a row, lanes a block

  int64_t blocks() const { return rows * pieces; }

  int64_t begin(int64_t block) const { return block / pieces * inner + block % pieces * size; }

  int64_t count(int64_t block) const; // of lanes
};

// `axes`: of the ports, in their order; `roots`: what is evaluated at each point.
Walk walk(const ir::Graph& g, const ir::Comp& n, const std::vector<ir::Id>& roots,
          const std::vector<int>& axes);

} // namespace tang::eval
