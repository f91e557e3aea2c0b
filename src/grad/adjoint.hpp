// Reverse mode on one graph: adjoints are appended node by node, from the last node to the first.
#pragma once
#include "tang/grad/degree.hpp"
#include "tang/grad/linear.hpp"

namespace tang::diff {

class Adjoints {
public:
  // `wanted`: what gradients are asked for. `proofs`: eliminations are recorded there; null: every max is
  // gated.
  Adjoints(Graph& g, std::set<Port> wanted, std::vector<Proof>* proofs)
      : g_(g), wanted_(std::move(wanted)), proofs_(proofs) {}

  // `part` is added to the adjoint of `of`; both have one shape.
  void add(Port of, Port part) { parts_[of].push_back(part); }

  // From the last node that exists now. Ports that were seeded before are the roots.
  void run();

  bool reaches(Port p) const { return parts_.count(p) > 0; }

  // The adjoint of a port: what was added, summed; zeros where nothing was.
  Port bar(Port p);

  bool moves(Port p) const { return needed_.count(p) > 0; } // does it depend on what is wanted?

  // Ports of recurrences that were replaced by recurrences which also emit their old states.
  const std::map<Port, Port>& instead() const { return instead_; }

private:
  void find_needed();
  void comprehension(NodeId id);
  Port seed(Port p);
  void inherit_domain(Comp& n, Port p);
  void recurrence(NodeId id);

  Graph& g_;
  std::set<Port> wanted_, needed_;
  std::vector<Port> roots_;
  NodeId end_ = 0; // nodes before it are differentiated
  std::map<Port, std::vector<Port>> parts_;
  std::map<Port, Port> instead_;
  std::vector<Proof>* proofs_;
  std::shared_ptr<const Graph> forward_; // for the proofs
};

// Which ports depend on `wanted` through real values.
std::set<Port> dependents(const Graph& g, const std::set<Port>& wanted);

// In a recurrence: which states and which of the step's ports depend on the reads and inits that move.
struct Moving {
  std::vector<char> states, args;
  std::set<Port> step;
};

Moving moving(const Graph& g, const ir::Recur& r, const std::set<Port>& needed);

} // namespace tang::diff
