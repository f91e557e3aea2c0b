#include "tang/kernel/barriers.hpp"

#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/kernel/analyze.hpp"

namespace tang::kernel {

namespace {
// One access of a statement. Two accesses with equal shares touch an element from one lane: the points'
// extents and the address over the points, when that is one element a point and nothing else.
struct Touch {
  int memory;
  bool writes;
  std::optional<std::vector<int64_t>> share;

  bool operator==(const Touch& o) const {
    return memory == o.memory && writes == o.writes && share == o.share;
  }
};

using Since = std::vector<Touch>; // the last barrier, on some path

bool injective(std::vector<std::pair<int64_t, int64_t>> modes) { // stride, extent
  std::sort(modes.begin(), modes.end());
  int64_t span = 0;
  for (auto& [stride, extent] : modes) {
    if (extent <= 1) continue;
    if (stride <= span) return false;
    span += stride * (extent - 1);
  }
  return true;
}

class Walk {
public:
  explicit Walk(const Kernel& k) : k_(k) {}

  Block block(const Block& b, Since& since) {
    Block out;
    for (auto& s : b) {
      if (std::holds_alternative<Barrier>(s.node)) continue;
      const Since mine = accesses(s);
      bool near = false, far = false; // lanes of one workgroup meet, or those of several
      for (auto& now : mine)
        for (auto& then : since)
          if (conflict(then, now)) (reaches(now.memory) ? far : near) = true;
      if (near || far) {
        out.push_back({Barrier{far ? Team::cluster : Team::workgroup}});
        const auto settled = [&](const Touch& t) { return far || !reaches(t.memory); };
        since.erase(std::remove_if(since.begin(), since.end(), settled), since.end());
      }
      merge(since, mine);
      Stmt to = s;
      if (auto* l = std::get_if<Loop>(&to.node)) loop(*l, since);
      if (auto* i = std::get_if<If>(&to.node)) {
        Since inside = since;
        i->then = block(i->then, inside);
        merge(since, inside);
      }
      out.push_back(std::move(to));
    }
    return out;
  }

private:
  static void merge(Since& to, const Since& from) {
    for (auto& a : from)
      if (std::find(to.begin(), to.end(), a) == to.end()) to.push_back(a);
  }

  // A round may follow another: what is pending at its end is pending at its beginning.
  void loop(Loop& l, Since& since) {
    Since before = since, after;
    Block body;
    for (;;) {
      after = before;
      body = block(l.body, after);
      Since more = before;
      merge(more, after);
      if (more.size() == before.size()) break;
      before = std::move(more);
    }
    l.body = std::move(body);
    merge(since, after);
  }

  // Globals may share memory: a state's new value takes its old one's place, element for element in its format, after
  // the last read of it.
  bool conflict(const Touch& then, const Touch& now) const {
    if (then.memory != now.memory) {
      if (!now.writes || then.writes || !is_global(then.memory) || !is_global(now.memory)) return false;
      const auto format = [&](const Touch& t) { return k_.memories[size_t(t.memory)].format; };
      return format(then) == format(now) && (!then.share || then.share != now.share);
    }
    if (!then.writes && !now.writes) return false;
    return !then.share || then.share != now.share;
  }

  // Lanes of other workgroups may touch it.
  bool reaches(int m) const {
    return k_.cluster > 1 && (is_global(m) || k_.memories[size_t(m)].team == Team::cluster);
  }

  bool is_global(int m) const { return k_.memories[size_t(m)].home == Home::global; }

  std::optional<std::vector<int64_t>> share(const Ref& r, const std::vector<TileAxis>& points, const Deal& d) const {
    const auto at = address(k_, r);
    if (!at || r.checked) return {};
    std::vector<int64_t> out{at->c, d.lead, d.team, d.run, d.each};
    std::vector<std::pair<int64_t, int64_t>> modes;
    size_t known = 0;
    for (auto& a : points) {
      int64_t stride = 0;
      for (auto& [v, c] : at->terms)
        if (v == a.var) stride = c, ++known;
      modes.emplace_back(stride, a.extent);
      out.insert(out.end(), {a.extent, stride});
    }
    auto is_grid = [&](Var v) {
      return std::any_of(k_.grid.begin(), k_.grid.end(), [&](const GridAxis& g) { return g.var == v; });
    };
    for (auto& [v, c] : at->terms) // what the whole workgroup shares
      if (is_grid(v)) out.insert(out.end(), {v, c}), ++known;
    if (known != at->terms.size() || !injective(modes))
      return {}; // it moves with something around the statement
    return out;
  }

  void add(Since& to, const Ref& r, bool writes, const std::vector<TileAxis>* points, const Deal& d = {}) const {
    if (k_.memories[size_t(r.memory)].home == Home::register_) return; // each lane its own
    // Every lane of a team reads what one of them writes.
    Touch a{r.memory, writes, points && !(d.each && !writes) ? share(r, *points, d) : std::nullopt};
    if (std::find(to.begin(), to.end(), a) == to.end()) to.push_back(a);
  }

  Since accesses(const Stmt& s) const {
    Since out;
    std::visit(Match{[&](const Apply& x) {
                       for (auto& r : x.body.refs) add(out, r, false, &x.axes, x.deal);
                       for (auto& r : x.dst) add(out, r, true, &x.axes, x.deal);
                     },
                     [&](const Fold& x) {
                       for (auto& r : x.body.refs) add(out, r, false, x.deal.team > 1 ? nullptr : &x.kept, x.deal);
                       for (auto& r : x.dst) {
                         if (x.accumulate) add(out, r, false, &x.kept, x.deal);
                         add(out, r, true, &x.kept, x.deal);
                       }
                     },
                     [&](const Contract& x) {
                       add(out, x.a, false, nullptr);
                       add(out, x.b, false, nullptr);
                       if (x.accumulate) add(out, x.dst, false, nullptr);
                       add(out, x.dst, true, nullptr);
                     },
                     [&](const Let& x) {
                       if (x.kind == Let::load) add(out, x.ref, false, nullptr);
                     },
                     [](const auto&) {}},
               s.node);
    return out;
  }

  const Kernel& k_;
};
} // namespace

Kernel place_barriers(const Kernel& k) {
  Kernel out = k;
  Since since;
  out.body = Walk(k).block(k.body, since);
  return out;
}

} // namespace tang::kernel
