// The driver: normal rules to a fixed point, and the trace of what they did.
#pragma once
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/rules.hpp"

namespace tang::rewrite {

struct Step {
  std::string rule;
  Law law;
  std::vector<std::string> what;             // the sites, by the nodes' labels
  int kernels_before = 0, kernels_after = 0; // stored folds and maps (measure.hpp)
  double bytes_before = 0, bytes_after = 0;  // of stored arrays; nominal where extents are symbolic
  std::vector<std::string> unstored;         // arrays that no longer need to be stored
};

struct Trace {
  std::vector<Step> steps;
  std::map<std::string, std::string> refused; // rule -> why it stopped
};

struct Optimized {
  Graph graph; // canonical
  Trace trace;
};

Optimized optimize(const Graph& g, const std::vector<Rule>& rules = normal_rules());
// The derivation as text: one paragraph a step, with its law.
std::string explain(const Trace& trace);

} // namespace tang::rewrite
