// The nest that the inequality is applied to, and the vertices of its cover polyhedron.
#include <algorithm>
#include <numeric>

#include "tang/base/number.hpp"
#include "tang/bound/split.hpp"

namespace tang::bound {

Row pick(const Nest& n, int axis) {
  Row r(size_t(n.loops()), 0);
  r[size_t(axis)] = 1;
  return r;
}

namespace {
// Does a row a*(..) + r, r < a, tell both parts of itself?
bool splits(const Row& row, size_t r, int64_t a) {
  if (row[r] != 1 && row[r] != -1) return false;
  for (size_t k = 0; k < row.size(); ++k)
    if (k != r && row[k] % a != 0) return false;
  return true;
}

bool split_once(Nest& n, std::vector<Split>& splits_made) {
  for (auto& array : n.arrays)
    for (auto& row : array.rows)
      for (size_t p = 0; p < row.size(); ++p) {
        const int64_t a = row[p] < 0 ? -row[p] : row[p];
        if (a < 2 || a > 64) continue;
        for (size_t r = 0; r < row.size(); ++r) {
          if (r == p || !splits(row, r, a) || n.extents[r] < 2) continue;
          bool all = true;
          for (auto& other : n.arrays)
            for (auto& v : other.rows)
              if (v[r]) all &= splits(v, r, a);
          if (!all) continue;
          // r = a * quotient + remainder; the quotient keeps its place.
          const int64_t extent = n.extents[r];
          const int remainder = n.loops();
          splits_made.push_back({int(r), remainder, extent, a});
          n.axes.push_back(n.axes[r] + "%" + std::to_string(a));
          n.axes[r] += "/" + std::to_string(a);
          n.extents[r] = ceil_div(extent, a);
          n.extents.push_back(a);
          for (auto& x : n.arrays) {
            std::vector<Row> rows;
            for (auto v : x.rows) {
              v.push_back(0);
              if (!v[r]) {
                rows.push_back(std::move(v));
                continue;
              }
              Row high = v, low(v.size(), 0);
              low.back() = 1;
              for (auto& k : high) k /= a;
              high[r] = v[r];
              high.back() = 0;
              rows.push_back(std::move(high));
              rows.push_back(std::move(low));
            }
            x.rows = std::move(rows);
          }
          auto move = [&](const ir::Form& f) {
            return ir::compose(f, [&](int axis) {
              return axis == int(r) ? ir::axis(axis, a) + ir::axis(remainder) : ir::axis(axis);
            });
          };
          n.domain = ir::moved(n.domain, move);
          for (auto& x : n.arrays) x.guard = ir::moved(x.guard, move);
          if (extent % a)
            n.domain = ir::intersection(
                n.domain, {{ir::constant(extent - 1) - ir::axis(int(r), a) - ir::axis(remainder)}});
          return true;
        }
      }
  return false;
}
} // namespace

Prepared prepare(const Nest& original) {
  Prepared out{original, {}, {}};
  Nest& n = out.nest;
  while (out.splits.size() < 4 && split_once(n, out.splits)) continue;
  // Equal kernels: a touched image of one is a touched image of the other, so their elements weigh together.
  std::map<int, int> uses;
  for (auto& a : n.arrays) ++uses[a.tensor];
  std::vector<Array> merged;
  for (auto& a : n.arrays) {
    const Space map = space(a.rows);
    if (map.empty()) continue; // one element: says nothing about the loops
    auto same = std::find_if(merged.begin(), merged.end(), [&](const Array& b) {
      if (b.guard != a.guard || space(b.rows) != map) return false;
      return b.tensor == a.tensor || (uses[a.tensor] == 1 && uses[b.tensor] == 1);
    });
    if (same == merged.end()) {
      merged.push_back(a);
      continue;
    }
    if (same->tensor == a.tensor) {
      --uses[a.tensor];
      continue;
    }
    same->name += "+" + a.name;
    same->weight += a.weight;
    same->output |= a.output;
  }
  n.arrays = std::move(merged);
  return out;
}

Nest prepared(const Nest& n, std::vector<std::string>* notes) {
  Prepared p = prepare(n);
  if (notes)
    for (auto& s : p.splits)
      notes->push_back("loop of " + std::to_string(s.extent) + " split by the stride " +
                       std::to_string(s.by) + " it meets");
  return p.nest;
}

namespace {
// A ray of the cone over the polyhedron: scaled integers, the last one the homogenizing coordinate.
struct Ray {
  std::vector<int64_t> v;
  uint64_t tight = 0; // conditions that it meets with equality
};

void reduce(std::vector<int64_t>& v) {
  int64_t g = 0;
  for (int64_t x : v) g = std::gcd(g, x);
  if (g > 1)
    for (int64_t& x : v) x /= g;
}

int64_t dot(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  int64_t s = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if (!a[k] || !b[k]) continue;
    auto p = mul_checked(a[k], b[k]);
    auto n = p ? add_checked(s, *p) : p;
    if (!n) throw Overflow{};
    s = *n;
  }
  return s;
}
} // namespace

std::vector<std::pair<std::vector<Rational>, std::vector<Rational>>>
vertices(const Nest& n, const std::vector<Condition>& rows) {
  // Loops with the same conditions share one t: a vertex with different ones only gives a smaller bound.
  const size_t m = n.arrays.size(), d = size_t(n.loops());
  std::vector<std::vector<int64_t>> kinds; // distinct conditions, over (arrays, kinds of loops, 1)
  std::vector<int> kind(d, -1);
  std::vector<std::vector<int>> signature;
  for (auto& row : rows)
    if (row.loop >= 0) {
      const bool mixed = std::count_if(rows.begin(), rows.end(), [&](const Condition& c) {
                           return c.loops[size_t(row.loop)] != 0;
                         }) > 1;
      auto it = std::find(signature.begin(), signature.end(), row.arrays);
      if (mixed || it == signature.end()) {
        kind[size_t(row.loop)] = int(signature.size());
        signature.push_back(mixed ? std::vector<int>{-1} : row.arrays);
      } else {
        kind[size_t(row.loop)] = int(it - signature.begin());
      }
    }
  for (size_t i = 0; i < d; ++i)
    if (kind[i] < 0) kind[i] = int(signature.size()), signature.push_back({-1});
  const size_t width = m + signature.size() + 1;
  for (auto& row : rows) {
    std::vector<int64_t> r(width, 0);
    for (size_t j = 0; j < m; ++j) r[j] = row.arrays[j];
    for (size_t i = 0; i < d; ++i) r[m + size_t(kind[i])] = row.loops[i];
    r.back() = -row.rank;
    if (std::find(kinds.begin(), kinds.end(), r) == kinds.end()) kinds.push_back(std::move(r));
  }
  std::vector<std::pair<std::vector<Rational>, std::vector<Rational>>> out;
  if (width + kinds.size() > 64) return out;
  std::vector<Ray> rays;
  for (size_t k = 0; k < width; ++k) {
    Ray r{std::vector<int64_t>(width, 0), ((uint64_t(1) << width) - 1) & ~(uint64_t(1) << k)};
    r.v[k] = 1;
    rays.push_back(std::move(r));
  }
  for (size_t c = 0; c < kinds.size(); ++c) {
    const uint64_t bit = uint64_t(1) << (width + c);
    std::vector<int64_t> at;
    for (auto& r : rays) at.push_back(dot(kinds[c], r.v));
    std::vector<Ray> next;
    for (size_t a = 0; a < rays.size(); ++a) {
      if (at[a] < 0) continue;
      next.push_back(rays[a]);
      if (!at[a]) next.back().tight |= bit;
    }
    for (size_t a = 0; a < rays.size(); ++a)
      for (size_t b = 0; b < rays.size(); ++b) {
        if (at[a] <= 0 || at[b] >= 0) continue;
        const uint64_t both = rays[a].tight & rays[b].tight;
        bool adjacent = true;
        for (size_t o = 0; o < rays.size() && adjacent; ++o)
          adjacent = o == a || o == b || (both & ~rays[o].tight) != 0;
        if (!adjacent) continue;
        Ray r{std::vector<int64_t>(width), both | bit};
        for (size_t k = 0; k < width; ++k) {
          auto x = mul_checked(-at[b], rays[a].v[k]), y = mul_checked(at[a], rays[b].v[k]);
          auto z = x && y ? add_checked(*x, *y) : x;
          if (!x || !y || !z) throw Overflow{};
          r.v[k] = *z;
        }
        reduce(r.v);
        next.push_back(std::move(r));
      }
    rays = std::move(next);
    if (rays.size() > 3000) return {};
  }
  for (auto& r : rays) {
    if (!r.v.back()) continue;
    std::vector<Rational> s, t;
    for (size_t j = 0; j < m; ++j) s.emplace_back(r.v[j], r.v.back());
    for (size_t i = 0; i < d; ++i) t.emplace_back(r.v[m + size_t(kind[i])], r.v.back());
    out.emplace_back(std::move(s), std::move(t));
  }
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace tang::bound
