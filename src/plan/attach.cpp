// Maps, and folds along the rows that a workgroup has: on the workgroup that finished their operands (an
// epilogue), else in a group of their own.
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

using ir::Comp;

namespace {
constexpr int64_t most_for_one = 1 << 16; // points that one workgroup may write when there is no other
} // namespace

std::vector<NodeId> Planner::nodes_of(int group) const {
  std::vector<NodeId> out;
  for (auto& m : groups_[size_t(group)].members) out.push_back(m.node);
  for (auto& e : groups_[size_t(group)].epilogues) out.push_back(e.node);
  return out;
}

std::vector<NodeId> Planner::companions(NodeId id) const {
  return home_[id] >= 0 ? nodes_of(home_[id]) : std::vector<NodeId>{id};
}

int Planner::latest(int group) const {
  int out = -1;
  for (NodeId id : nodes_of(group)) out = std::max(out, rank_[id]);
  return out;
}

// Does something in `to` depend on something in `from`, in the graph of groups? `through_others`: direct
// reads do not count.
bool Planner::path(const std::vector<NodeId>& from, const std::vector<NodeId>& to,
                   bool through_others) const {
  std::vector<char> seen(g_.nodes.size(), 0), goal(g_.nodes.size(), 0), start(g_.nodes.size(), 0);
  for (NodeId id : to) goal[id] = 1;
  std::vector<NodeId> open = from;
  for (NodeId id : from) seen[id] = start[id] = 1;
  bool found = false;
  auto reach = [&](NodeId id) {
    if (seen[id]) return;
    for (NodeId x : companions(id)) {
      if (!seen[x]) open.push_back(x);
      seen[x] = 1;
    }
  };
  while (!open.empty() && !found) {
    const NodeId id = open.back();
    open.pop_back();
    for (NodeId r : readers_[id]) {
      if (goal[r])
        found |= !(through_others && start[id]);
      else
        reach(r);
    }
    for (auto& [first, second] : after_)
      if (home_[id] == first)
        for (NodeId x : nodes_of(second)) {
          if (goal[x])
            found = true;
          else
            reach(x);
        }
  }
  return found;
}

// All it reads of the group is complete when the loops end, and is read at the same grid coordinates.
std::optional<Epilogue> Planner::at_same_grid(NodeId id, int group) const {
  const Comp& c = comp(id);
  const Group& g = groups_[size_t(group)];
  Epilogue e{id, std::vector<int>(size_t(c.axis_count()), -1)};
  std::vector<int> taken(g.extent.size(), -1);
  for (auto& a : c.args) {
    if (home_[a.from.node] != group) continue;
    const std::vector<int>* axis = nullptr;
    for (auto& m : g.members)
      if (m.node == a.from.node) {
        if (m.flush != Flush::store || m.each_tile) return std::nullopt;
        axis = &m.axis;
      }
    for (auto& x : g.epilogues)
      if (x.node == a.from.node) axis = &x.axis;
    const ir::Out& out = comp(a.from.node).outs[a.from.port];
    if (!axis || !out.view.empty()) return std::nullopt;
    for (size_t d = 0; d < a.view.size(); ++d) {
      const int core = (*axis)[size_t(out.axes[d])];
      if (core < 0) continue; // private: whole in the workgroup
      if (!a.view[d].is_pick()) return std::nullopt;
      const int mine = a.view[d].picked();
      if (size_t(mine) >= c.points.size()) return std::nullopt; // it folds over workgroups
      if (c.extent(mine).value() != g.extent[size_t(core)]) return std::nullopt;
      if (e.axis[size_t(mine)] >= 0 && e.axis[size_t(mine)] != core) return std::nullopt;
      if (taken[size_t(core)] >= 0 && taken[size_t(core)] != mine) return std::nullopt;
      e.axis[size_t(mine)] = core;
      taken[size_t(core)] = mine;
    }
  }
  int64_t workgroups = 1;
  for (size_t k = 0; k < g.extent.size(); ++k)
    if (g.role[k] == Role::grid) {
      check(taken[k] >= 0,
            "a stored member without a grid axis: " + label(g_, id)); // it would fold it, and accumulate
      workgroups = mul_saturated(workgroups, g.extent[k]);
    }
  // It must not dwarf the loops that it follows, nor take the parallelism from a large result.
  int64_t work = 0;
  for (auto& m : g.members) work = std::max(work, terms(comp(m.node)));
  const int64_t mine = terms(c);
  if (mine > work || (workgroups <= 1 && mine > most_for_one)) return std::nullopt;
  return e;
}

bool Planner::attach(NodeId id, int group) {
  const auto e = at_same_grid(id, group);
  if (!e || (comp(id).monoid && !shares_rows(*e, group))) return false;
  const auto nodes = nodes_of(group);
  if (path(nodes, {id}, true) || path({id}, nodes, false)) return false;
  groups_[size_t(group)].epilogues.push_back(*e);
  home_[id] = group;
  return true;
}

bool Planner::attach_to_best(NodeId id) {
  std::map<int, int64_t> words; // read of each group: they need not be stored for this node
  if (s_.epilogues)
    for (auto& a : comp(id).args)
      if (const int h = home_[a.from.node]; h >= 0 && !g_[a.from.node].recur())
        words[h] += touched(g_, comp(id), a);
  std::vector<int> groups;
  for (auto& w : words) groups.push_back(w.first);
  std::stable_sort(groups.begin(), groups.end(), [&](int a, int b) {
    return words[a] != words[b] ? words[a] > words[b] : latest(a) > latest(b);
  });
  return std::any_of(groups.begin(), groups.end(), [&](int h) { return attach(id, h); });
}

void Planner::place_maps() {
  for (NodeId id : order_) {
    if (home_[id] >= 0 || shared_[id]) continue;
    if (g_[id].recur()) {
      add_group({}, id);
      groups_.back().members.push_back({id, {}, Flush::store, false});
      continue;
    }
    if (!attach_to_best(id)) alone(id);
  }
}

// A row that the workgroup brought in for its folds is there for one more: the fold reads, value by value, an
// array that they read too, at the same rows, or that was made on the workgroup.
bool Planner::shares_rows(const Epilogue& e, int group) const {
  const Comp& c = comp(e.node);
  const Group& g = groups_[size_t(group)];
  if (!g.shared.empty() || !g_[g.members[0].node].comp()) return false;
  const std::vector<char> common = common_axes(c);
  for (size_t a = 0; a < common.size(); ++a)
    if (e.axis[a] >= 0 && !common[a]) return false; // workgroups would repeat the component that lacks it
  using Rows = std::pair<Port, std::vector<int>>; // the grid axis of each dimension
  auto rows = [&](const Comp& n, const std::vector<int>& axis, const ir::Arg& a) {
    Rows out{a.from, {}};
    for (auto& f : a.view) {
      const int core = f.is_pick() ? axis[size_t(f.picked())] : -1;
      out.second.push_back(core >= 0 && g.role[size_t(core)] == Role::grid ? core : -1);
    }
    return touched(g_, n, a) == terms(n) ? std::optional(out) : std::nullopt;
  };
  std::set<Rows> at_hand;
  auto add = [&](NodeId x, const std::vector<int>& axis) {
    for (auto& a : comp(x).args)
      if (auto r = rows(comp(x), axis, a)) at_hand.insert(*r);
  };
  for (auto& m : g.members) add(m.node, m.axis);
  for (auto& x : g.epilogues) add(x.node, x.axis);
  bool shares = false;
  for (auto& a : c.args) {
    const auto r = rows(c, e.axis, a);
    shares |= r && (home_[a.from.node] == group || at_hand.count(*r));
  }
  return shares;
}

// With the maps between the group's results and it.
bool Planner::attach_fold(NodeId id) {
  if (!s_.epilogues || s_.groups.count(label(g_, id))) return false;
  const auto groups = groups_;
  const auto home = home_;
  for (auto& a : comp(id).args) {
    const NodeId x = a.from.node;
    if (home_[x] < 0 && g_[x].comp() && !comp(x).monoid && !shared_[x]) attach_to_best(x);
  }
  std::set<int> tried;
  for (auto& a : comp(id).args) {
    const int h = home_[a.from.node];
    if (h >= 0 && !g_[a.from.node].recur() && tried.insert(h).second && attach(id, h))
      return true;
  }
  groups_ = groups;
  home_ = home;
  return false;
}

} // namespace tang::plan
