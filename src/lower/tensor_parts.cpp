#include <algorithm>

#include "tang/lower/tensor_lowerer.hpp"

// A group in pieces: members alone, and members whose results lie along the loop.
namespace tang::lower {

// The member alone, with the subterms that it reads and the maps of its result.
std::optional<plan::Group> alone(const ir::Graph& g, const plan::Group& group, const plan::Member& m) {
  plan::Group out = group;
  out.members = {m};
  out.shared.clear(), out.epilogues.clear();
  auto reads = [&](ir::NodeId reader, ir::NodeId node) {
    auto& args = g[reader].comp()->args;
    return std::any_of(args.begin(), args.end(), [&](auto& a) { return a.from.node == node; });
  };
  for (auto& s : group.shared)
    if (reads(m.node, s.node)) out.shared.push_back(s);
  std::set<ir::NodeId> mine{m.node};
  for (auto& e : group.epilogues) {
    bool own = false, other = false;
    for (auto& x : group.members)
      if (reads(e.node, x.node)) (x.node == m.node ? own : other) = true;
    for (auto& x : group.epilogues)
      if (reads(e.node, x.node)) (mine.count(x.node) ? own : other) = true;
    if (own && other) return {};
    if (own) out.epilogues.push_back(e), mine.insert(e.node);
  }
  return out;
}

namespace {
// A member that is added to, alone: its points on the grid, its folds in the loop.
plan::Group by_its_points(const ir::Graph& g, const plan::Group& group, const plan::Member& m) {
  plan::Group out = *alone(g, group, m);
  const size_t points = g[m.node].comp()->points.size();
  for (size_t a = 0; a < m.axis.size(); ++a)
    if (m.axis[a] >= 0) out.role[size_t(m.axis[a])] = a < points ? plan::Role::grid : plan::Role::looped;
  out.members[0].flush = plan::Flush::store, out.members[0].each_tile = false;
  return out;
}
} // namespace

Parted part(const ir::Graph& g, const plan::Group& group) {
  Parted out{group, {}};
  out.stays.members.clear();
  for (auto& m : group.members)
    if (m.flush == plan::Flush::store && !m.each_tile)
      out.stays.members.push_back(m);
    else
      out.added.push_back(by_its_points(g, group, m));
  return out;
}

std::optional<Added> added_to(ir::Graph& g, const plan::Group& own, const schedule::Schedule& s,
                              const target::Target& t) {
  const Choice form = choose(g, own, s, t, true);
  if (form.members[0].contractions.size() != 1 || form.members[0].held) return {};
  return Added{own.members[0], form.members[0].contractions.begin()->second};
}

} // namespace tang::lower
