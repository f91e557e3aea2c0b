#include "tang/bound/tiles.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "tang/base/number.hpp"
#include "tang/bound/count.hpp"

namespace tang::bound {

namespace {
// Coordinates that share loops, of one array; each is counted on its own.
struct Factor {
  std::vector<int> axes;
  std::vector<Row> rows;
  bool injective = false;
};

struct Shape {
  std::vector<Factor> factors;
  std::vector<char> depends;
  int64_t weight = 1;
  bool output = false;
};

Shape shape_of(const Array& a, size_t loops) {
  Shape s;
  s.depends.assign(loops, 0);
  s.weight = a.weight;
  s.output = a.output;
  Groups groups(loops);
  for (auto& r : a.rows) {
    groups.tie(r);
    for (size_t k = 0; k < loops; ++k) s.depends[k] |= char(r[k] != 0);
  }
  for (auto& g : groups.all()) {
    Factor f;
    for (int x : g)
      if (s.depends[size_t(x)]) f.axes.push_back(x);
    for (auto& r : a.rows)
      if (std::any_of(g.begin(), g.end(), [&](int x) { return r[size_t(x)] != 0; })) f.rows.push_back(r);
    if (f.axes.empty()) continue;
    f.injective = rank(f.rows) == int(f.axes.size());
    s.factors.push_back(std::move(f));
  }
  return s;
}

int64_t image(const Factor& f, const std::vector<int64_t>& box) {
  int64_t n = 1;
  if (f.injective) {
    for (int a : f.axes) n = mul_saturated(n, box[size_t(a)]);
    return n;
  }
  if (f.rows.size() == 1) {
    std::vector<std::pair<int64_t, int64_t>> terms;
    for (int a : f.axes) terms.emplace_back(f.rows[0][size_t(a)], box[size_t(a)]);
    auto c = count_sums(terms);
    if (c) return *c;
  }
  auto c = count_images(box, ir::everywhere(), f.rows);
  return c ? *c : INT64_MAX;
}

// Elements moved when every tile is loaded once: whole tiles and the ragged last ones.
int64_t all_tiles(const Factor& f, const std::vector<int64_t>& extents, const std::vector<int64_t>& tile) {
  if (f.axes.size() == 1) return extents[size_t(f.axes[0])];
  if (f.injective) return image(f, extents);
  int64_t total = 0;
  std::vector<int64_t> box = tile;
  std::function<void(size_t, int64_t)> go = [&](size_t k, int64_t times) {
    if (k == f.axes.size()) {
      total = add_saturated(total, mul_saturated(times, image(f, box)));
      return;
    }
    const size_t a = size_t(f.axes[k]);
    const int64_t full = extents[a] / tile[a], rest = extents[a] % tile[a];
    box[a] = tile[a];
    if (full) go(k + 1, times * full);
    box[a] = rest;
    if (rest) go(k + 1, times);
    box[a] = tile[a];
  };
  go(0, 1);
  return total;
}

int64_t footprint(const Shape& s, const std::vector<int64_t>& tile) {
  int64_t n = s.weight;
  for (auto& f : s.factors) n = mul_saturated(n, image(f, tile));
  return n;
}

int64_t moved(const Shape& s, const std::vector<int64_t>& extents, const std::vector<int64_t>& tile,
              const std::vector<int>& order) {
  size_t last = 0; // one past the innermost loop that moves and that the array depends on
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t a = size_t(order[k]);
    if (s.depends[a] && tile[a] < extents[a]) last = k + 1;
  }
  int64_t visits = 1;
  for (size_t k = 0; k < last; ++k) {
    const size_t a = size_t(order[k]);
    if (!s.depends[a]) visits = mul_saturated(visits, ceil_div(extents[a], tile[a]));
  }
  int64_t n = s.weight;
  for (auto& f : s.factors) n = mul_saturated(n, all_tiles(f, extents, tile));
  return mul_saturated(n, s.output ? 2 * visits - 1 : visits);
}
} // namespace

int64_t traffic_of(const Nest& n, const std::vector<int64_t>& tile, const std::vector<int>& order) {
  int64_t q = 0;
  for (auto& a : n.arrays) q = add_saturated(q, moved(shape_of(a, n.extents.size()), n.extents, tile, order));
  return q;
}

Result<Tiling> best_tiles(const Nest& n, const Room& room, int64_t most) {
  if (n.domain != ir::everywhere()) return Refusal{"tiles of masked nests are not searched"};
  const size_t d = n.extents.size();
  if (d > 7) return Refusal{"more than 7 loops"};
  std::vector<Shape> shapes;
  for (auto& a : n.arrays) {
    if (a.gathered) return Refusal{"tiles of gathers are not searched"};
    shapes.push_back(shape_of(a, d));
  }
  // For each trip count the smallest tile that has it: the same traffic, the least room.
  std::vector<std::vector<int64_t>> choices(d);
  double product = 1;
  for (size_t a = 0; a < d; ++a) {
    const int64_t g = room.granule.empty() ? 1 : room.granule[a], e = n.extents[a];
    if (!room.fixed.empty() && room.fixed[a] > 0) {
      choices[a] = {std::min(room.fixed[a], e)};
      continue;
    }
    std::set<int64_t> all;
    for (int64_t b = g; b < e;) {
      const int64_t trips = ceil_div(e, b);
      all.insert(ceil_div(ceil_div(e, trips), g) * g < e ? ceil_div(ceil_div(e, trips), g) * g : e);
      b = trips == 1 ? e : std::max(b + g, ceil_div(ceil_div(e, trips - 1), g) * g);
    }
    all.insert(e);
    choices[a].assign(all.begin(), all.end());
    product *= double(choices[a].size());
  }
  Tiling best;
  if (product > double(most)) {
    best.exhaustive = false;
    for (size_t a = 0; a < d; ++a) {
      const int64_t g = room.granule.empty() ? 1 : room.granule[a];
      std::vector<int64_t> few;
      for (int64_t b : choices[a]) {
        const int64_t u = ceil_div(b, g);
        if (b == n.extents[a] || (u & (u - 1)) == 0 || u % 3 == 0) {
          if (few.empty() || b >= few.back() + few.back() / 4 || b == n.extents[a]) few.push_back(b);
        }
      }
      if (choices[a].size() > 1) choices[a] = few;
    }
  }
  std::vector<std::vector<int>> orders;
  std::vector<int> order(d);
  std::iota(order.begin(), order.end(), 0);
  // Which order among the loops an array depends on never matters; only which loops lie inside of all of them
  // does.
  do orders.push_back(order);
  while (d <= 5 && std::next_permutation(order.begin(), order.end()));
  if (d > 5)
    for (size_t inner = 0; inner < d; ++inner) {
      std::vector<int> o;
      for (size_t a = 0; a < d; ++a)
        if (a != inner) o.push_back(int(a));
      o.push_back(int(inner));
      orders.push_back(o);
      best.exhaustive = false;
    }
  bool found = false;
  std::vector<int64_t> tile(d, 1);
  for (size_t a = 0; a < d; ++a) tile[a] = choices[a].front();
  auto held = [&] {
    int64_t units = 0;
    for (auto& s : shapes) units = add_saturated(units, footprint(s, tile));
    for (auto& h : room.held) {
      int64_t v = 1;
      for (int a : h) v = mul_saturated(v, tile[size_t(a)]);
      units = add_saturated(units, v);
    }
    return units;
  };
  std::function<void(size_t)> go = [&](size_t k) {
    if (k == d) {
      ++best.candidates;
      const int64_t units = held();
      for (auto& o : orders) {
        int64_t q = 0;
        for (auto& s : shapes) q = add_saturated(q, moved(s, n.extents, tile, o));
        if (found && (q > best.traffic || (q == best.traffic && units >= best.footprint))) continue;
        found = true;
        best.traffic = q, best.footprint = units, best.tile = tile, best.order = o;
      }
      return;
    }
    for (int64_t b : choices[k]) {
      tile[k] = b;
      if (held() > room.capacity) break; // footprints grow with every tile
      go(k + 1);
    }
    tile[k] = choices[k].front();
  };
  go(0);
  if (!found) return Refusal{"no tile fits"};
  return best;
}

Result<TwoLevels> best_tiles(const Nest& n, const Room& outer, double outer_rate, const Room& inner,
                             double inner_rate) {
  // The inner search sees one outer tile as its whole problem; the outer one is thinned, since each costs an
  // inner search.
  auto alone = best_tiles(n, outer);
  if (!alone) return Refusal{alone.why()};
  TwoLevels best;
  bool found = false;
  std::set<std::vector<int64_t>> tried;
  for (int64_t shrink : {1, 2, 4}) {
    Room o = outer;
    o.capacity = outer.capacity / shrink;
    auto top = best_tiles(n, o);
    if (!top || !tried.insert(top->tile).second) continue;
    Nest within = n;
    within.extents = top->tile;
    auto low = best_tiles(within, inner);
    if (!low) continue;
    double tiles = 1;
    for (size_t a = 0; a < n.extents.size(); ++a) tiles *= double(ceil_div(n.extents[a], top->tile[a]));
    const double time =
        std::max(double(top->traffic) / outer_rate, double(low->traffic) * tiles / inner_rate);
    if (found && time >= best.time) continue;
    found = true;
    best = {*top, *low, time};
  }
  if (!found) return Refusal{"no pair of tiles fits"};
  return best;
}

} // namespace tang::bound
