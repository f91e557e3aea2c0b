// Forward mode on one graph: the tangent of every node that depends on what varies, appended in order.
#pragma once
#include <optional>

#include "tang/grad/linear.hpp"

namespace tang::diff {

class Tangents {
public:
  // `along`: the tangent of each port that varies. Max is always gated: no elimination.
  Tangents(Graph& g, std::map<Port, Port> along) : g_(g), tangents_(std::move(along)) {}

  void run();
  std::optional<Port> of(Port p) const; // none: it does not vary

private:
  void comprehension(NodeId id, const std::set<Port>& varies);
  void recurrence(NodeId id);

  Graph& g_;
  std::map<Port, Port> tangents_;
};

} // namespace tang::diff
