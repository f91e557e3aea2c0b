// The order of steps, and which map takes the memory of which state input.
#include <algorithm>

#include "tang/expr/absence.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

using ir::Comp;

std::vector<NodeId> Planner::evaluators(NodeId id) const {
  if (!shared_[id]) return {id};
  return readers_[id];
}

// Of the ready groups the one whose first node comes first.
void Planner::order_steps() {
  const size_t n = groups_.size();
  std::vector<std::set<int>> before(n);
  auto precedes = [&](int a, int b) {
    if (a >= 0 && b >= 0 && a != b) before[size_t(b)].insert(a);
  };
  for (NodeId id : order_)
    for (NodeId r : readers_[id])
      for (NodeId x : evaluators(r)) precedes(home_[id], home_[x]);
  for (auto& [a, b] : after_) precedes(a, b);
  std::vector<NodeId> key(n);
  for (size_t h = 0; h < n; ++h) {
    const auto nodes = nodes_of(int(h));
    key[h] = *std::min_element(nodes.begin(), nodes.end());
  }
  step_of_.assign(n, -1);
  for (size_t s = 0; s < n; ++s) {
    int next = -1;
    for (size_t h = 0; h < n; ++h) {
      const bool ready = step_of_[h] < 0 && std::all_of(before[h].begin(), before[h].end(), [&](int b) { return step_of_[size_t(b)] >= 0; });
      if (ready && (next < 0 || key[h] < key[size_t(next)])) next = int(h);
    }
    check(next >= 0, "the graph of groups has a cycle");
    step_of_[size_t(next)] = int(s);
    Step step;
    const NodeId first = groups_[size_t(next)].members[0].node;
    if (auto* r = g_[first].recur()) {
      step.recur = first;
      step.body = std::make_shared<const Plan>(make_body(*r, s_));
    } else {
      step.group = groups_[size_t(next)];
    }
    p_.steps.push_back(std::move(step));
  }
}

}  // namespace tang::plan
