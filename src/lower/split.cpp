#include "tang/lower/split.hpp"

#include <algorithm>
#include <numeric>

namespace tang::lower {

namespace {
std::set<int> common(const std::set<int>& a, const std::set<int>& b) {
  std::set<int> out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.begin()));
  return out;
}
}  // namespace

std::set<int> batch_axes(const std::vector<Factor>& factors, const std::set<int>& points) {
  std::vector<std::set<int>> own;
  for (auto& f : factors)
    if (std::set<int> mine = common(f.axes, points); !mine.empty()) own.push_back(std::move(mine));
  std::set<int> batch = points;
  for (auto& mine : own) {
    const bool scale = own.size() > 1 && std::all_of(own.begin(), own.end(), [&](auto& other) {
      return &other == &mine ||
             (other.size() > mine.size() && std::includes(other.begin(), other.end(), mine.begin(), mine.end()));
    });
    if (!scale) batch = common(batch, mine);
  }
  return batch;
}

Result<Sides> split_factors(const std::vector<Factor>& factors, const std::set<int>& points, const std::set<int>& folds,
                            int last) {
  // Factors that share a point axis belong together.
  std::vector<int> group(factors.size());
  std::iota(group.begin(), group.end(), 0);
  for (bool again = true; again;) {
    again = false;
    for (size_t x = 0; x < factors.size(); ++x)
      for (size_t y = 0; y < x; ++y) {
        if (group[x] == group[y]) continue;
        if (common(common(factors[x].axes, factors[y].axes), points).empty()) continue;
        const int from = group[x], to = group[y];
        for (int& g : group)
          if (g == from) g = to;
        again = true;
      }
  }
  // A factor without points of its own goes to the side that needs its fold axes, not to the one where a base's weight
  // (-1) stands if the other has them too, else to the first.
  std::vector<int> with_points;
  for (size_t x = 0; x < factors.size(); ++x)
    if (!common(factors[x].axes, points).empty() && std::find(with_points.begin(), with_points.end(), group[x]) == with_points.end())
      with_points.push_back(group[x]);
  if (with_points.size() != 2) return Refusal{"its factors fall in " + std::to_string(with_points.size()) + " groups of points, not two"};
  std::set<int> axes[2];
  std::vector<int> ids[2];
  auto put = [&](size_t side, const Factor& f) {
    axes[side].insert(f.axes.begin(), f.axes.end());
    ids[side].push_back(f.id);
  };
  for (size_t x = 0; x < factors.size(); ++x)
    for (size_t side : {0, 1})
      if (group[x] == with_points[side]) put(side, factors[x]);
  for (size_t x = 0; x < factors.size(); ++x)
    if (group[x] != with_points[0] && group[x] != with_points[1]) {
      const std::set<int> needs = common(factors[x].axes, folds);
      auto has = [&](size_t side) { return std::includes(axes[side].begin(), axes[side].end(), needs.begin(), needs.end()); };
      const bool weight = std::find(ids[0].begin(), ids[0].end(), -1) != ids[0].end();
      put(has(1) && (weight || !has(0)) ? 1 : 0, factors[x]);
    }
  for (auto& s : axes)
    if (!std::includes(s.begin(), s.end(), folds.begin(), folds.end())) return Refusal{"a side does not read every folded axis"};
  const size_t b = axes[0].count(last) ? 0 : 1;
  if (!axes[b].count(last)) return Refusal{"no side holds the result's last axis"};
  Sides out;
  out.a = ids[1 - b];
  out.b = ids[b];
  for (int x : common(axes[1 - b], points)) out.m.push_back(x);
  for (int x : common(axes[b], points)) out.n.push_back(x);
  out.k.assign(folds.begin(), folds.end());
  return out;
}

void lighten(Sides& s, const std::vector<Factor>& factors, const std::set<int>& points, const std::set<int>& folds,
             const std::function<double(int)>& size) {
  double rows = 1, columns = 1;
  for (int a : s.m) rows *= size(a);
  for (int a : s.n) columns *= size(a);
  std::vector<int>&from = rows > columns ? s.a : s.b, &to = rows > columns ? s.b : s.a;
  std::vector<int> kept, moved;
  std::set<int> held;
  for (auto& f : factors) {
    if (std::find(from.begin(), from.end(), f.id) == from.end()) continue;
    const bool own = !common(f.axes, points).empty();
    (own ? kept : moved).push_back(f.id);
    if (own) held.insert(f.axes.begin(), f.axes.end());
  }
  if (!std::includes(held.begin(), held.end(), folds.begin(), folds.end())) return;
  from = kept;
  to.insert(to.end(), moved.begin(), moved.end());
}

}  // namespace tang::lower
