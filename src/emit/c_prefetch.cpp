// Which statement of a loop body fetches the rows of the next round. A body that reads a row from far memory,
// then works on it in the caches, leaves the memory idle meanwhile; the hardware cannot know which row comes
// next.
#include <algorithm>

#include "tang/emit/c_kernel.hpp"

namespace tang::emit {

namespace {
constexpr int64_t least = 1 << 10,
                  most = 256 << 10; // bytes a round: more than a page of streams, less than the L2

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
    const kernel::Apply* apply;
    const kernel::Body* body;
    std::vector<TileAxis> axes;
    size_t terms;
  };

  std::vector<Pass> passes;
  for (auto& s : body) {
    if (auto* a = std::get_if<kernel::Apply>(&s.node); a && a->vector >= 0) {
      passes.push_back({a, &a->body, lanes_last(a->axes, size_t(a->vector)),
                        expr::schedule(*u.k.pool, a->body.values).size()});
    } else if (auto* f = std::get_if<kernel::Fold>(&s.node); f && f->vector >= 0) {
      std::vector<TileAxis> axes = f->kept;
      axes.insert(axes.end(), f->folded.begin(), f->folded.end());
      passes.push_back({nullptr, &f->body, lanes_last(axes, size_t(f->vector)), 0});
    }
  }
  std::vector<int> seen;
  for (size_t first = 0; first < passes.size(); ++first) {
    const Pass& p = passes[first];
    if (p.axes.empty()) continue;
    int64_t bytes = 4;
    for (auto& a : p.axes) bytes *= a.extent;
    if (bytes < least || bytes > most) continue;
    for (auto& r : p.body->refs) {
      const Memory& m = u.memory(r.memory);
      if (m.home != kernel::Home::global || m.format != Format::f32 || m.size() * 4 < u.o.stream_bytes ||
          !pure(r))
        continue;
      if (std::find(seen.begin(), seen.end(), r.memory) != seen.end()) continue;
      const Affine at = offset(u, r);
      if (!coefficient(at, v) || coefficient(at, p.axes.back().var) != 1) continue;
      const Pass* host = nullptr;
      for (size_t h = first + 1; h < passes.size(); ++h) {
        const Pass& q = passes[h];
        bool same = q.apply && q.axes.size() == p.axes.size();
        for (size_t i = 0; same && i < q.axes.size(); ++i) same = q.axes[i].extent == p.axes[i].extent;
        if (same && (!host || q.terms > host->terms)) host = &q;
      }
      seen.push_back(r.memory);
      if (!host) continue;
      Affine next = at + kernel::constant(step * coefficient(at, v));
      std::vector<std::pair<Var, int64_t>> moved;
      for (size_t i = 0; i < p.axes.size(); ++i) {
        moved.emplace_back(host->axes[i].var, coefficient(next, p.axes[i].var));
        next = without(next, p.axes[i].var);
      }
      for (auto& [x, k] : moved) next = next + kernel::variable(x, k);
      // An axis of one point is at 0.
      std::vector<Var> gone;
      for (auto& t : next.terms) gone.push_back(t.first);
      for (Var x : gone)
        if (u.ranges[size_t(x)].lo == 0 && u.ranges[size_t(x)].hi == 0 && x != v) next = without(next, x);
      u.prefetches.push_back({host->apply, r.memory, next});
    }
  }
}

} // namespace tang::emit
