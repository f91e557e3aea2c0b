#include "tang/lower/fit.hpp"

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

} // namespace tang::lower
