// The bounds of a graph's kernels as text and as JSON.
#pragma once
#include "tang/bound/traffic.hpp"

namespace tang::bound {

struct Line {
  std::string kernel, kind; // kind: "as written" or "chained"
  Result<Bound> bound;
};

// One line a comprehension; two where it evaluates larger folds inside its body.
std::vector<Line> bounds_of(const ir::Graph& g, int64_t memory, Unit unit);
std::string as_text(const std::vector<Line>& lines, int64_t memory, Unit unit);
std::string as_json(const std::vector<Line>& lines, int64_t memory, Unit unit); // schema tang.bound/1

} // namespace tang::bound
