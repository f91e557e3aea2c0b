// Roles of core axes, and the flush that follows from them.
#include <algorithm>

#include "tang/plan/planner.hpp"

namespace tang::plan {

using ir::Comp;

namespace {
constexpr int64_t nominal_tile =
    64; // elements a block, for counting how often an accumulated word is added to
} // namespace

Planner::Wish Planner::wish(const Group& g) const {
  Wish w;
  auto take = [&](NodeId id) {
    const schedule::GroupFields* f = schedule::fields_of(s_, g_, id);
    if (!f) return;
    for (auto& [k, r] : f->role) w.role.emplace(k, r);
    if (f->is_stored()) w.stored.insert(id);
  };
  for (auto& m : g.members) take(m.node);
  return w;
}

// A sum, and what holds it between blocks of terms does not round it: a narrow output would, at each block.
// Kernels of warpgroups add in f32 beside it.
bool Planner::adds_in_memory(NodeId id) const {
  const bool narrow = std::any_of(g_.outputs.begin(), g_.outputs.end(), [&](auto& o) {
    return o.port.node == id && ir::type_of(o.format) == ir::Type::real && ir::row(o.format).bits < 32;
  });
  return (!narrow || t_.blocks()) && is_sum(g_, comp(id));
}

// Nothing when a member that cannot be added to in parts would have to be.
std::optional<double> Planner::words_accumulated(Group& g, const std::set<NodeId>& stored) const {
  double words = 0;
  for (Member& m : g.members) {
    const Comp& c = comp(m.node);
    const size_t points = c.points.size();
    bool grid_fold = false, loop_fold = false;
    double times = 1, loop_times = 1;
    m.each_tile = false;
    for (size_t a = 0; a < m.axis.size(); ++a) {
      const int k = m.axis[a];
      if (k < 0) continue;
      const bool grid = g.role[size_t(k)] == Role::grid;
      if (a < points) {
        m.each_tile |= !grid;
        continue;
      }
      (grid ? grid_fold : loop_fold) = true;
      const int64_t e = g.extent[size_t(k)];
      const bool one_each = t_.blocks() && e < nominal_tile; // blocks of warpgroups are long on one axis
      (grid ? times : loop_times) *= double(one_each ? e : (e + nominal_tile - 1) / nominal_tile);
    }
    m.flush = grid_fold ? Flush::accumulate : m.each_tile && loop_fold ? Flush::ordered : Flush::store;
    if (m.flush == Flush::store) continue;
    if (stored.count(m.node) || !adds_in_memory(m.node)) return std::nullopt;
    double volumes = 0;
    for (auto& o : c.outs) volumes += double(count(c, o.axes));
    words += volumes * times * (m.each_tile ? loop_times : 1) * (m.flush == Flush::accumulate ? 1 : 0.5);
  }
  return words;
}

namespace {
// Multiply-adds of one evaluation of a term; an elementary function is worth several.
double work_of(const ir::Pool& pool, ir::Id term) {
  double n = 0;
  for (ir::Id x : expr::schedule(pool, {term})) {
    using ir::Op;
    const Op op = pool[x].op;
    const bool slow = op == Op::exp2 || op == Op::log2 || op == Op::sin || op == Op::atan2 ||
                      op == Op::sqrt || op == Op::recip || op == Op::ratio;
    n += slow ? 8 : pool[x].arity() > 0 ? 1 : 0;
  }
  return n;
}
} // namespace

// Joined, some result is added to from several blocks; apart, the subterms and the member's own function of
// them are evaluated once more.
bool Planner::pays(const Group& now, const Member& m, Group joined) {
  const double before = [&] {
    Group g = now;
    return words_accumulated(g, {}).value_or(0);
  }();
  const double words = words_accumulated(joined, {}).value_or(0) - before;
  if (words <= 0) return true;
  const schedule::GroupFields* fields = schedule::fields_of(s_, g_, m.node);
  const bool told = fields && fields->joint;
  const Comp& c = comp(m.node);
  double again = 0, cells = 1;
  for (int64_t e : now.extent) cells *= double(e);
  for (ir::Id l : c.lift) again += cells * work_of(g_.pool, l);
  for (auto& x : now.shared)
    if (std::any_of(c.args.begin(), c.args.end(), [&](auto& a) { return a.from.node == x.node; }))
      again += double(terms(comp(x.node)));
  if (told ? *fields->joint : t_.sum_cost > 0 && words * t_.sum_cost <= again) return true;
  note("apart: " + label(g_, m.node) + ": " +
       (told              ? "the schedule says so"
        : t_.sum_cost > 0 ? "adding to results from several blocks costs more than evaluating again"
                          : "target " + t_.name + " stores a result once"));
  return false;
}

// A lone node: its points on the grid, its folds looped. A group: axes that are points of all members on the
// grid, no axis that all fold, at least one more axis if any can be; of these the least accumulated words,
// ties to the first.
bool Planner::choose_roles(Group& g, const Wish& w, bool lone) const {
  const size_t axes = g.extent.size();
  std::vector<char> any(axes, 0), all(axes, 1);
  for (auto& m : g.members)
    for (size_t k = 0; k < axes; ++k) {
      const auto at = std::find(m.axis.begin(), m.axis.end(), int(k));
      const bool point = at != m.axis.end() && size_t(at - m.axis.begin()) < comp(m.node).points.size();
      any[k] |= char(point);
      all[k] &= char(point);
    }
  std::vector<Role> best;
  double least = 0;
  for (bool spread : {true, false}) { // with one more axis on the grid, if any can be
    for (uint32_t mask = 0; mask < 1u << axes; ++mask) {
      bool legal = true, more = false;
      for (size_t k = 0; k < axes; ++k) {
        const bool grid = mask >> k & 1, is_batch = lone ? any[k] : all[k];
        auto told = w.role.find(int(k));
        if (told != w.role.end())
          legal &= grid == (told->second == Role::grid);
        else
          legal &= is_batch ? grid : !grid || (any[k] && !lone);
        more |= grid && !all[k];
        g.role.resize(axes);
        g.role[k] = grid ? Role::grid : Role::looped;
      }
      bool partly = false;
      for (size_t k = 0; k < axes; ++k) partly |= any[k] && !all[k];
      if (!legal || (spread && partly && !more)) continue;
      const auto words = words_accumulated(g, w.stored);
      if (!words || (!best.empty() && *words >= least)) continue;
      best = g.role;
      least = *words;
    }
    if (!best.empty() || axes == 0) break;
  }
  if (best.empty() && axes > 0) return false;
  g.role = best;
  return bool(words_accumulated(g, w.stored));
}

} // namespace tang::plan
