// Which statement of a loop body fetches the rows of the next round. A body that reads a row from far memory and
// then works on it in the caches, leaves the memory idle; the hardware cannot know which row comes next.
#include <algorithm>

#include "tang/emit/c_kernel.hpp"
#include "tang/kernel/passes.hpp"

namespace tang::emit {

namespace {
constexpr int64_t least = 1 << 10,
                  most = 256 << 10; // bytes a round: more than a page of streams, less than the L2

// An axis of one point is at 0.
Affine settled(const Unit& u, Affine a) {
  std::vector<Var> gone;
  for (auto& t : a.terms)
    if (u.ranges[size_t(t.first)].lo == 0 && u.ranges[size_t(t.first)].hi == 0) gone.push_back(t.first);
  for (Var x : gone) a = without(a, x);
  return a;
}

std::vector<TileAxis> lanes_last(std::vector<TileAxis> axes, size_t lane) {
  const TileAxis x = axes[lane];
  axes.erase(axes.begin() + long(lane));
  axes.push_back(x);
  std::vector<TileAxis> out;
  for (auto& a : axes)
    if (a.extent != 1) out.push_back(a);
  return out;
}
} // namespace

void plan_prefetches(Unit& u, const kernel::Block& body, Var v, int64_t step) {
  struct Pass {
    const void* host;
    const kernel::Body* body;
    std::vector<TileAxis> axes;
    int effort;
    bool late; // after an inner loop, which has read its rows
  };

  if (u.o.lanes == 1) return; // no statement goes by rows of lanes
  std::vector<Pass> passes;
  bool late = false;
  for (auto& s : body) {
    late |= std::holds_alternative<kernel::Loop>(s.node);
    if (auto* a = std::get_if<kernel::Apply>(&s.node); a && a->vector >= 0) {
      passes.push_back({a, &a->body, lanes_last(a->axes, size_t(a->vector)),
                        kernel::effort_along(*u.k.pool, a->body, a->axes[size_t(a->vector)].var), late});
    } else if (auto* f = std::get_if<kernel::Fold>(&s.node); f && f->vector >= 0) {
      std::vector<TileAxis> axes = f->kept;
      axes.insert(axes.end(), f->folded.begin(), f->folded.end());
      passes.push_back({f, &f->body, lanes_last(axes, size_t(f->vector)),
                        kernel::effort_along(*u.k.pool, f->body, axes[size_t(f->vector)].var), late});
    }
  }
  auto row_of = [&](const Pass& p, const Ref& r) {
    Affine row = offset(u, r);
    for (auto& a : p.axes) row = without(row, a.var);
    return row;
  };
  auto called = [&](const Ref& r, const Affine& row) { return std::to_string(r.memory) + text(settled(u, row)); };
  std::set<std::string> all; // rows that some pass of this round reads
  for (auto& p : passes)
    for (auto& r : p.body->refs) all.insert(called(r, row_of(p, r)));
  auto is_far = [&](const Ref& r) {
    const Memory& m = u.memory(r.memory);
    return m.home == kernel::Home::global && m.format == Format::f32 && m.size() * 4 >= u.o.stream_bytes && pure(r);
  };
  // Rows of a memory that move with the loop and that no pass has read in the round before.
  auto brings = [&](const Pass& p, const Ref& r) {
    const Affine at = offset(u, r);
    if (!is_far(r) || p.axes.empty() || !coefficient(at, v) || coefficient(at, p.axes.back().var) != 1) return false;
    return !all.count(called(r, row_of(p, r) + kernel::constant(step * coefficient(at, v))));
  };
  auto brings_beside = [&](const Pass& q, int memory, const std::string& name) { // another row of that memory
    return std::any_of(q.body->refs.begin(), q.body->refs.end(), [&](const Ref& r) {
      return r.memory == memory && brings(q, r) && called(r, row_of(q, r)) != name;
    });
  };
  std::vector<std::string> seen; // rows of a memory
  for (size_t first = 0; first < passes.size(); ++first) {
    const Pass& p = passes[first];
    if (p.axes.empty() || p.late) continue;
    int64_t bytes = 4;
    for (auto& a : p.axes) bytes *= a.extent;
    if (bytes < least || bytes > most) continue;
    for (auto& r : p.body->refs) {
      if (!brings(p, r)) continue;
      const Affine at = offset(u, r);
      const std::string name = called(r, row_of(p, r));
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      const Pass* host = nullptr;
      for (size_t h = first + 1; h < passes.size(); ++h) {
        const Pass& q = passes[h];
        bool same = q.axes.size() == p.axes.size();
        for (size_t i = 0; same && i < q.axes.size(); ++i) same = q.axes[i].extent == p.axes[i].extent;
        // The last: near to its use. One that waits for a row beside has no time to spare.
        if (same && !brings_beside(q, r.memory, name) && (!host || q.effort >= host->effort)) host = &q;
      }
      seen.push_back(name);
      if (!host) continue;
      Affine next = at + kernel::constant(step * coefficient(at, v));
      std::vector<std::pair<Var, int64_t>> moved;
      for (size_t i = 0; i < p.axes.size(); ++i) {
        moved.emplace_back(host->axes[i].var, coefficient(next, p.axes[i].var));
        next = without(next, p.axes[i].var);
      }
      for (auto& [x, k] : moved) next = next + kernel::variable(x, k);
      u.prefetches.push_back({host->host, r.memory, settled(u, next)});
    }
  }
}

} // namespace tang::emit
