// A rule: a graph in, an equal graph or a reason out; with the law that it rests on and a graph that it fires
// on.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tang/ir/graph.hpp"

namespace tang::rewrite {

using ir::Graph;

struct Law {
  enum Strength {
    exact,
    algebraic
  }; // exact: for all values, inf and NaN included; algebraic: for finite values

  std::string statement;
  std::string theorem; // a theorem in proofs/, or "unproved: reason"
  Strength strength = exact;
};

struct Rewritten {
  Graph graph;
  std::vector<std::string> what; // one line a site: the nodes by label, and what became of them
};

// Normal rules run in the driver to a fixed point and are idempotent. Directed rules take arguments and are
// called by name (grad, schedules); as a Rule they stand here with one choice of arguments, so that the same
// tests cover them.
struct Rule {
  std::string name;
  Law law;
  std::function<Result<Rewritten>(const Graph&)> apply;
  std::function<Graph()> witness;
  bool directed = false;
};

} // namespace tang::rewrite
