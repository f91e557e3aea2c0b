#include "tang/lower/window.hpp"

#include "tang/kernel/windows.hpp"

namespace tang::lower {

namespace {
int64_t divisor_below(int64_t e, int64_t most) {
  int64_t n = std::max<int64_t>(1, std::min(e, most));
  while (e % n) --n;
  return n;
}

// A point axis and a fold axis along one dimension: the last such point axis, or -1.
int window_axis(const ir::Comp& n) {
  int out = -1;
  for (auto& a : n.args)
    for (auto& v : a.view)
      for (int x = 0; x < int(n.points.size()); ++x)
        for (int s = int(n.points.size()); s < n.axis_count(); ++s)
          if (v.axis(x) > 0 && v.axis(s) > 0 && n.extent(s).value() > 1 &&
              v.axis(x) < v.axis(s) * n.extent(s).value())
            out = std::max(out, x);
  return out;
}
} // namespace

bool slides(const ir::Comp& n) { return window_axis(n) >= 0; }

bool window_tiles(const ir::Comp& n, const plan::Member& m, const plan::Group& group, int vector,
                  std::vector<int64_t>& tile) {
  constexpr int64_t lanes_along = 32, longest = 64, points = 256; // of a block: lanes; results; runs
  const int x = window_axis(n);
  if (x < 0 || vector < 0 || x == vector || size_t(vector) >= n.points.size()) return false;
  auto grid = [&](int a) {
    const int c = m.axis[size_t(a)];
    return c >= 0 && group.role[size_t(c)] == plan::Role::grid ? c : -1;
  };
  const int along = grid(x), lanes = grid(vector);
  if (along < 0 || lanes < 0) return false;
  const int64_t run = divisor_below(group.extent[size_t(along)], kernel::most_results);
  if (run < 2) return false;
  tile[size_t(along)] = run * divisor_below(group.extent[size_t(along)] / run, longest / run);
  tile[size_t(lanes)] = divisor_below(group.extent[size_t(lanes)], lanes_along);
  int64_t left = points / (tile[size_t(along)] / run * tile[size_t(lanes)]);
  for (int a = int(n.points.size()); a-- > 0 && left > 1;) {
    const int c = grid(a);
    if (c < 0 || c == along || c == lanes) continue;
    tile[size_t(c)] = divisor_below(group.extent[size_t(c)], left);
    left /= tile[size_t(c)];
  }
  return true;
}

} // namespace tang::lower
