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

namespace {
// Where the node differs from x, if it is select(when, new, x) or (new where it exists) or_else x.
std::optional<ir::Id> stored_where(ir::Pool& pool, const Comp& c, NodeId x) {
  const expr::Term top = pool[c.lift[0]];
  const ir::Id other = top.op == ir::Op::select ? top.args[2] : top.op == ir::Op::or_else ? top.args[1] : 0;
  if (top.op != ir::Op::select && top.op != ir::Op::or_else) return std::nullopt;
  if (pool[other].op != ir::Op::arg || c.args[size_t(pool[other].whole)].from.node != x) return std::nullopt;
  return top.op == ir::Op::select ? top.args[0] : expr::present(pool, top.args[0]).when;
}
} // namespace

bool Planner::may_take(NodeId id, NodeId x) const {
  const ir::Input* in = g_[x].input();
  const Comp& c = comp(id);
  if (!in || in->kind != ir::Input::state || c.points != in->shape || !c.outs[0].view.empty()) return false;
  if (ir::type_of(in->format) != g_.type({id, 0})) return false;
  for (size_t d = 0; d < c.outs[0].axes.size(); ++d)
    if (c.outs[0].axes[d] != int(d)) return false;
  if (body_) {
    auto it = heir_.find(x);
    if (it == heir_.end() || it->second != id) return false;
  }
  return std::all_of(c.args.begin(), c.args.end(),
                     [&](const ir::Arg& a) { return a.from.node != x || at_own_point(c, a); });
}

// `id` is an epilogue, and what `r` reads of x lies on the same workgroup and was read before it runs.
bool Planner::before_in_place(NodeId r, NodeId id, NodeId x) const {
  const Group& g = groups_[size_t(home_[id])];
  const std::vector<int>*mine = nullptr, *theirs = nullptr;
  for (auto& m : g.members)
    if (m.node == r) theirs = &m.axis;
  for (auto& e : g.epilogues) {
    if (e.node == id) mine = &e.axis;
    if (e.node == r && !mine) theirs = &e.axis;
  }
  if (!mine || !theirs) return false;
  for (auto& a : comp(r).args) {
    if (a.from.node != x) continue;
    for (size_t d = 0; d < a.view.size(); ++d)
      if ((*mine)[d] >= 0 && (!a.view[d].is_pick() || (*theirs)[size_t(a.view[d].picked())] != (*mine)[d]))
        return false;
  }
  return true;
}

// The node's group runs after every other reader of the old value.
std::string Planner::why_not_take(NodeId id, NodeId x) const {
  if (output_[x]) return "the old value is an output";
  if (!body_) // an output has memory of its own unless it bears the state's name
    for (auto& o : g_.outputs)
      if (o.port.node == id && o.name != g_[x].name)
        return "it is an output under another name, '" + o.name + "'";
  for (auto& [other, d] : donated_)
    if (d.input == x) return label(g_, other) + " takes it";
  const ir::Format format = g_[x].input()->format;
  bool fits = output_[id] || own_format({id, 0}) == format;
  for (auto& o : g_.outputs) fits &= o.port.node != id || o.format == format;
  if (!fits) return "the new value is stored in another format";
  const std::vector<NodeId> mine = companions(id);
  for (NodeId r : readers_[x])
    for (NodeId e : evaluators(r)) {
      if (e == id) continue;
      if (home_[e] == home_[id]) {
        if (r == e && before_in_place(r, id, x)) continue;
        return label(g_, r) + " reads the old value in the same step";
      }
      if (path(mine, companions(e), false))
        return "a reader of the old value, " + label(g_, r) + ", depends on the new one";
    }
  return "";
}

// Nodes with the fewest candidates choose first, so that an optimizer's parameter does not take its moment's
// memory.
void Planner::donate() {
  std::vector<std::pair<NodeId, std::vector<NodeId>>> wishes;
  for (NodeId id : order_) {
    if (!g_[id].comp() || comp(id).monoid || home_[id] < 0) continue;
    std::vector<NodeId> from;
    for (auto& a : comp(id).args)
      if (may_take(id, a.from.node) && std::find(from.begin(), from.end(), a.from.node) == from.end())
        from.push_back(a.from.node);
    if (!from.empty()) wishes.emplace_back(id, std::move(from));
  }
  std::stable_sort(wishes.begin(), wishes.end(),
                   [](auto& a, auto& b) { return a.second.size() < b.second.size(); });
  for (auto& [id, from] : wishes)
    for (NodeId x : from) {
      if (donated_.count(id)) break;
      const std::string why = why_not_take(id, x);
      if (!why.empty()) {
        note("refused: " + label(g_, id) + " in the memory of " + label(g_, x) + ": " + why + "; copying");
        continue;
      }
      for (NodeId r : readers_[x])
        for (NodeId e : evaluators(r))
          if (home_[e] != home_[id]) after_.emplace_back(home_[e], home_[id]);
      donated_[id] = {x, stored_where(pool_, comp(id), x)};
    }
}

std::vector<std::set<int>> Planner::predecessors() const {
  std::vector<std::set<int>> before(groups_.size());
  auto precedes = [&](int a, int b) {
    if (a >= 0 && b >= 0 && a != b) before[size_t(b)].insert(a);
  };
  for (NodeId id : order_)
    for (NodeId r : readers_[id])
      for (NodeId x : evaluators(r)) precedes(home_[id], home_[x]);
  for (auto& [a, b] : after_) precedes(a, b);
  return before;
}

// In the order of nodes, unless another one holds less at once.
void Planner::order_steps() {
  values_ = values();
  const auto before = predecessors();
  auto order = [&](const std::vector<Value>* sparing) {
    Order o;
    for (int h : sequence(before, sparing)) o.entries.push_back({h, false});
    return o;
  };
  auto most = [&](const Order& o) {
    const auto bytes = held(values_, o, groups_.size());
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  };
  Order o = order(nullptr);
  if (Order other = order(&values_); most(other) < most(o)) o = std::move(other);
  make_steps(s_.memory > 0 && !body_ ? within_memory(std::move(o), values_) : o);
}

void Planner::make_steps(const Order& o) {
  step_of_ = o.at(groups_.size());
  for (auto& e : o.entries) {
    Step step;
    step.again = e.again;
    const NodeId first = groups_[size_t(e.group)].members[0].node;
    if (auto* r = g_[first].recur()) {
      step.recur = first;
      step.body = std::make_shared<const Plan>(make_body(*r, s_, t_));
    } else {
      step.group = groups_[size_t(e.group)];
    }
    p_.steps.push_back(std::move(step));
  }
}

} // namespace tang::plan
