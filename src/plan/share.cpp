// Shared subterms: short contractions that are evaluated once per tile and never stored.
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/ir/worth.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

using ir::Comp;

Planner::Words Planner::words_read(NodeId id) const {
  const Comp& c = comp(id);
  std::map<Port, int64_t> words;
  for (auto& a : c.args) {
    int64_t& w = words[a.from];
    w = std::min(add_saturated(w, touched(g_, c, a)), volume(g_.shape(a.from)));
  }
  Words out;
  for (auto& w : words) {
    out.all = add_saturated(out.all, w.second);
    out.largest = std::max(out.largest, w.second);
  }
  return out;
}

// Every reader folds it, at one place of picked axes, and is stored itself. `expanding`: storing it costs
// more traffic than evaluating it where it is read; else its only reader must fold it.
bool Planner::may_share(NodeId id, bool expanding) const {
  if (output_[id] || stored_[id] || shared_[id] || !g_[id].comp()) return false;
  const Comp& c = comp(id);
  if (!is_sum(g_, c) || c.lift.size() != 1 || g_.type({id, 0}) != ir::Type::real || !c.outs[0].view.empty())
    return false;
  if (c.folds.empty() || volume(c.folds) > s_.short_contraction || c.outs[0].axes.size() != c.points.size())
    return false;
  for (Port q : sources(g_, id))
    if (shared_[q.node]) return false;
  const auto& readers = readers_[id];
  if (readers.empty() || (!expanding && readers.size() != 1)) return false;
  if (const Words w = words_read(id);
      expanding && !ir::is_cheaper_evaluated(double(points(c)), double(w.all), double(w.largest)))
    return false;
  for (NodeId r : readers) {
    if (shared_[r] || !g_[r].comp() || !comp(r).monoid) return false;
    const Comp& n = comp(r);
    const std::vector<char> uniform = uniforms(n);
    int reads = 0;
    bool folded = false;
    for (size_t k = 0; k < n.args.size(); ++k) {
      if (n.args[k].from.node != id) continue;
      std::set<int> axes;
      for (auto& f : n.args[k].view) {
        if (!f.is_pick() || !axes.insert(f.picked()).second) return false;
        folded |= size_t(f.picked()) >= n.points.size();
      }
      if (uniform[k] || ++reads > 1) return false;
    }
    if (!expanding && !folded) return false;
  }
  return true;
}

// Users first: of a chain of short contractions the last is shared. Those that expand come before the others,
// so that a projection is stored rather than the scores made of it.
void Planner::choose_shared() {
  shared_.assign(g_.nodes.size(), 0);
  if (!s_.share_contractions) return;
  for (bool expanding : {true, false})
    for (size_t k = order_.size(); k-- > 0;)
      if (may_share(order_[k], expanding)) shared_[order_[k]] = 1;
}

} // namespace tang::plan
