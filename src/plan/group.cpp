// Groups of folds that read common shared subterms at the same core coordinates.
#include <algorithm>

#include "tang/plan/keyed.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

using ir::Comp;

std::vector<int> Planner::reads_of_shared(NodeId id) const {
  std::vector<int> out;
  const Comp& c = comp(id);
  for (size_t k = 0; k < c.args.size(); ++k)
    if (shared_[c.args[k].from.node]) out.push_back(int(k));
  auto size = [&](int k) { return points(comp(c.args[size_t(k)].from.node)); };
  std::stable_sort(out.begin(), out.end(), [&](int a, int b) { return size(a) > size(b); });
  return out;
}

// In a group without members the first read makes the core axes. Every subterm covers all of them, so that
// each of its values belongs to one tile; every component of the member has all those that are its points.
bool Planner::align(NodeId id, Group& g, Member& m) const {
  const Comp& c = comp(id);
  m = {id, std::vector<int>(size_t(c.axis_count()), -1), Flush::store, false};
  std::vector<int> reads = reads_of_shared(id);
  auto known = [&](NodeId s) {
    return std::find_if(g.shared.begin(), g.shared.end(), [&](const Shared& x) { return x.node == s; });
  };
  const bool fresh = g.members.empty();
  if (!fresh) {
    std::stable_partition(reads.begin(), reads.end(),
                          [&](int k) { return known(c.args[size_t(k)].from.node) != g.shared.end(); });
    if (reads.empty() || known(c.args[size_t(reads[0])].from.node) == g.shared.end()) return false;
  }
  std::vector<int> taken(g.extent.size(), -1); // the member's axis of each core axis
  for (size_t r = 0; r < reads.size(); ++r) {
    const ir::Arg& a = c.args[size_t(reads[r])];
    const std::vector<int>& out = comp(a.from.node).outs[0].axes;
    const auto it = known(a.from.node);
    std::vector<int> core(a.view.size(), -1);
    for (size_t d = 0; d < a.view.size(); ++d) {
      const int axis = a.view[d].picked();
      int want = it != g.shared.end() ? it->axis[size_t(out[d])] : m.axis[size_t(axis)];
      if (want < 0 && fresh && r == 0) {
        want = int(g.extent.size());
        g.extent.push_back(c.extent(axis).value());
        taken.push_back(-1);
      }
      if (want < 0 || (m.axis[size_t(axis)] >= 0 && m.axis[size_t(axis)] != want)) return false;
      if (taken[size_t(want)] >= 0 && taken[size_t(want)] != axis) return false;
      const int64_t source = comp(a.from.node).points[size_t(out[d])].value();
      if (c.extent(axis).value() != g.extent[size_t(want)] || source != g.extent[size_t(want)]) return false;
      m.axis[size_t(axis)] = core[size_t(out[d])] = want;
      taken[size_t(want)] = axis;
    }
    if (core.size() != g.extent.size()) return false;
    if (it == g.shared.end()) g.shared.push_back({a.from.node, core});
  }
  const std::vector<char> common = common_axes(c);
  for (size_t a = 0; a < common.size(); ++a)
    if (m.axis[a] >= 0 && !common[a]) return false;
  return std::find(taken.begin(), taken.end(), -1) == taken.end();
}

int Planner::add_group(Group g, NodeId first) {
  groups_.push_back(std::move(g));
  home_[first] = int(groups_.size()) - 1;
  return home_[first];
}

// A point that each term decides: a workgroup adds every term in its place, instead of testing it at all of
// them. Where results are stored once, and for a few places, the tests are as good.
std::optional<int> Planner::adds_by_key(NodeId id) const {
  const Comp& c = comp(id);
  if (!s_.share_contractions || t_.sum_cost <= 0 || !adds_in_memory(id) || c.folds.empty() ||
      c.lift.size() != 1 || g_.type({id, 0}) != ir::Type::real || !c.outs[0].view.empty())
    return {};
  for (int t = 0; t < int(c.points.size()); ++t)
    if (c.extent(t).value() > t_.lanes && key_of(g_, c, t)) return t;
  return {};
}

// Its axes are the core axes; a point axis that some component lacks is private, or workgroups would repeat
// that component.
void Planner::alone(NodeId id) {
  Group g;
  Member m{id, {}, Flush::store, false};
  const Comp& c = comp(id);
  const std::vector<char> common = common_axes(c);
  const std::optional<int> keyed = adds_by_key(id);
  for (int a = 0; a < c.axis_count(); ++a) {
    const bool core = (size_t(a) >= common.size() || common[size_t(a)]) && a != keyed;
    m.axis.push_back(core ? int(g.extent.size()) : -1);
    if (core) g.extent.push_back(c.extent(a).value());
  }
  g.members.push_back(std::move(m));
  const Wish w = wish(g);
  if (!choose_roles(g, w, true)) {
    note("refused: the roles that the schedule gives " + label(g_, id) +
         ": it would be accumulated in parts, and it is no sum, or to be stored, or its output rounds each "
         "part");
    check(choose_roles(g, {}, true), "no legal roles for " + label(g_, id));
  }
  if (keyed) g.members[0].flush = Flush::ordered; // complete after the last term, not before
  add_group(std::move(g), id);
}

bool Planner::group_folds() {
  groups_.clear();
  home_.assign(g_.nodes.size(), -1);
  for (NodeId id : order_) {
    if (!g_[id].comp() || shared_[id] || !comp(id).monoid) continue;
    const std::vector<int> reads = reads_of_shared(id);
    if (reads.empty()) {
      if (!attach_fold(id)) alone(id);
      continue;
    }
    bool placed = false;
    for (int h = int(groups_.size()) - 1; h >= 0 && !placed; --h) {
      Group trial = groups_[size_t(h)];
      Member m;
      if (trial.shared.empty() || !align(id, trial, m)) continue;
      trial.members.push_back(m);
      if (!choose_roles(trial, wish(trial), false)) continue;
      if (!pays(groups_[size_t(h)], m, trial)) continue;
      const auto now = nodes_of(h);
      if (path(now, {id}, false) || path({id}, now, false)) continue;
      groups_[size_t(h)] = std::move(trial);
      home_[id] = h;
      placed = true;
    }
    if (placed) continue;
    Group g;
    Member m;
    bool ok = align(id, g, m);
    if (ok) {
      g.members.push_back(m);
      ok = choose_roles(g, wish(g), false);
      if (!ok && choose_roles(g, {}, false)) {
        ok = true;
        note("refused: what the schedule says of " + label(g_, id) +
             ": it would have to be accumulated in parts");
      }
    }
    if (!ok) { // the smallest subterm is stored after all
      const NodeId s = comp(id).args[size_t(reads.back())].from.node;
      note("not shared: " + label(g_, s) + ": " + label(g_, id) + " reads it at no common core axes");
      shared_[s] = 0;
      stored_[s] = 1;
      return false;
    }
    add_group(std::move(g), id);
  }
  return true;
}

} // namespace tang::plan
