#include "tang/lower/fit.hpp"

#include <algorithm>

#include "tang/base/number.hpp"

namespace tang::lower {

namespace {
constexpr int64_t long_chunk = 64; // terms

int64_t halved(int64_t tile, const Choice& c) {
  const int64_t half = (tile + 1) / 2;
  for (int64_t unit : {c.columns(), int64_t(c.rows)})
    if (tile > unit && tile % unit == 0) return (half + unit - 1) / unit * unit;
  return half;
}
} // namespace

Choice fit(Choice c, const plan::Group& group, int64_t limit,
           const std::function<int64_t(const Choice&)>& bytes) {
  int64_t now = bytes(c);
  if (now <= limit) return c;
  while (now > limit) {
    std::optional<Choice> best;
    int64_t least = now;
    auto look = [&](plan::Role role, int64_t above) {
      for (size_t a = 0; a < c.tile.size(); ++a) {
        if (group.role[a] != role || c.tile[a] <= above) continue;
        Choice next = c;
        next.tile[a] = halved(c.tile[a], c);
        if (next.tile[a] == c.tile[a]) next.tile[a] = (c.tile[a] + 1) / 2;
        if (!c.panel_ends(a, group.extent[a], next.tile[a])) continue;
        if (const int64_t b = bytes(next); b < least) least = b, best = std::move(next);
      }
    };
    look(plan::Role::looped, long_chunk); // a shorter chunk of a fold costs no reuse, while it is long
    if (!best) look(plan::Role::looped, 1), look(plan::Role::grid, 1);
    if (!best) return c;
    c = std::move(*best);
    now = least;
  }
  c.text += " cut to";
  for (size_t a = 0; a < c.tile.size(); ++a) c.text += (a ? "x" : " ") + std::to_string(c.tile[a]);
  return c;
}

int fewer_vectors(int vectors) {
  int n = std::max(1, vectors / 2);
  while (vectors % n) --n;
  return n;
}

schedule::Schedule with_vectors(schedule::Schedule s, const ir::Graph& g, const plan::Group& group, int vectors) {
  for (auto& m : group.members)
    for (const std::string& name : {schedule::key(g, m.node), g.label({m.node, 0})})
      if (const auto it = s.groups.find(name); it != s.groups.end() && it->second.vectors) it->second.vectors = vectors;
  return s;
}

int64_t even_tile(int64_t e, int64_t most) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t t = 1; t <= std::min(e, most); ++t)
    if (const int64_t cost = ceil_div(e, t) * (8 * t + 1); cost <= least) best = t, least = cost;
  return best;
}

void cut_depth(const plan::Group& group, const std::vector<char>& is_k, std::vector<int64_t>& tile) {
  constexpr int64_t most_depth = 512; // terms of a block over several axes
  int64_t depth = 1;
  size_t first = group.extent.size();
  for (size_t a = group.extent.size(); a-- > 0;) {
    if (group.role[a] != plan::Role::looped || !is_k[a]) continue;
    if (tile[a] < group.extent[a]) return; // a block holds a part of another axis already
    depth = mul_saturated(depth, std::max<int64_t>(1, tile[a]));
    if (tile[a] > 1) first = a;
  }
  if (first == group.extent.size() || depth <= most_depth) return;
  const int64_t e = group.extent[first], fit = std::max<int64_t>(1, most_depth / (depth / e));
  int64_t even = fit;
  while (e % even) --even; // no block of a few terms at the end
  tile[first] = 2 * even >= fit ? even : ceil_div(e, ceil_div(e, fit));
}

int64_t columns_that_stay(const plan::Group& group, int64_t memory, int64_t panel, const std::vector<char>& is_m,
                          const std::vector<char>& is_k, const std::vector<int64_t>& tile) {
  int64_t rows = 1, depth = 1;
  for (size_t a = 0; a < tile.size(); ++a) {
    if (is_m[a] && group.role[a] == plan::Role::grid) rows = mul_saturated(rows, tile[a]);
    if (is_k[a] && group.role[a] == plan::Role::looped) depth = mul_saturated(depth, tile[a]);
  }
  const int64_t left = memory * 3 / 4 / 4 - mul_saturated(depth, rows + panel);
  return std::max<int64_t>(256, left / rows) / panel * panel;
}

int outer_columns(const plan::Group& group, const std::vector<char>& is_m, const std::vector<char>& is_n,
                  const std::vector<int64_t>& tile) {
  int columns = -1, rows = -1;
  for (size_t a = 0; a < tile.size(); ++a) {
    if (group.role[a] != plan::Role::grid || ceil_div(group.extent[a], tile[a]) <= 1) continue;
    int& found = is_n[a] ? columns : rows;
    if (!is_m[a] == !is_n[a] || found >= 0) return -1; // of several axes: as they are
    found = int(a);
  }
  if (columns < 0 || rows < 0) return -1;
  const int64_t m = group.extent[size_t(rows)], n = group.extent[size_t(columns)];
  const int64_t rows_outside = m + ceil_div(m, tile[size_t(rows)]) * n;
  const int64_t columns_outside = n + ceil_div(n, tile[size_t(columns)]) * m;
  return columns_outside < rows_outside ? columns : -1;
}

void enough_blocks(const plan::Group& group, const target::Target& t, bool is_map, int runs,
                   std::vector<int64_t>& tile) {
  const bool lanes = t.workgroup_limit > 1;
  for (size_t c = 0; c < tile.size(); ++c) {
    if (group.role[c] != plan::Role::grid || tile[c] == 1) continue;
    int64_t total = 1, beside = 1; // blocks; points of a block for each element of this axis
    for (size_t x = 0; x < tile.size(); ++x)
      if (group.role[x] == plan::Role::grid) {
        total *= ceil_div(group.extent[x], tile[x]);
        if (x != c) beside *= tile[x];
      }
    const int64_t want = (lanes && (is_map || runs >= 0) ? 8 : 2) * t.workers;
    int64_t least = runs == int(c) ? std::min<int64_t>(t.lanes, tile[c]) : 1;
    if (lanes && is_map) least = std::clamp<int64_t>(t.workgroup_limit / beside, 1, tile[c]);
    if (total < want) tile[c] = std::max(least, ceil_div(tile[c] * total, want) / least * least);
    if (!lanes || tile[c] > 1) break;
  }
}

} // namespace tang::lower
