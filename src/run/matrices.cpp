#include "tang/run/matrices.hpp"

#include <algorithm>
#include <set>

#include "tang/rewrite/directed.hpp"

namespace tang::run {

ir::Graph for_matrices(ir::Graph g, const Options& o) {
  std::set<ir::NodeId> narrow;
  const bool wide = o.schedule.pieces > 0;
  if (o.operands && (expr::row(*o.operands).bits == 16 || *o.operands == ir::Format::tf32 || wide)) narrow = rewrite::operands(g);
  g = rewrite::row_weights(rewrite::keyed_rows(rewrite::narrow_operands(rewrite::weighed_blocks(g), narrow, wide)));
  if (!o.operands) return g;
  return rewrite::turned_alike(rewrite::stored_operands(rewrite::part_sums(g, o.target.workers)));
}

namespace {
constexpr int64_t long_axis = 16;

// Has the node one value, over two long axes? Numbers a row stay wide.
bool is_array(const ir::Graph& g, ir::NodeId id) {
  if (!g[id].comp() || g.ports(id) != 1 || g.type({id, 0}) != ir::Type::real) return false;
  const auto shape = g.shape({id, 0});
  return std::count_if(shape.begin(), shape.end(), [](auto& e) { return !e.is_constant() || e.value() >= long_axis; }) >= 2;
}
} // namespace

void store_operands(ir::Graph& g, ir::Format f, schedule::Schedule& s) {
  std::set<ir::NodeId> nodes = rewrite::operands(g);
  const std::map<ir::NodeId, ir::NodeId> parts = rewrite::parts(g);
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (const auto sum = parts.find(id); is_array(g, sum == parts.end() ? id : sum->second)) nodes.insert(id);
  auto fields = [&](ir::NodeId id) -> schedule::GroupFields& {
    const schedule::GroupFields* told = schedule::fields_of(s, g, id);
    return s.groups[schedule::key(g, id)] = told ? *told : schedule::GroupFields{};
  };
  for (ir::NodeId id : nodes)
    if (auto& x = fields(id); !x.store) x.store = f;
  for (auto& [id, sum] : parts)
    if (auto& x = fields(id); !x.stored) x.stored = true;
}

} // namespace tang::run
