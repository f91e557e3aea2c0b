#include "tang/bound/space.hpp"

#include <algorithm>

namespace tang::bound {

Space reduced(std::vector<Vector> m) {
  size_t top = 0;
  const size_t width = m.empty() ? 0 : m[0].size();
  for (size_t c = 0; c < width && top < m.size(); ++c) {
    size_t p = top;
    while (p < m.size() && !m[p][c].sign()) ++p;
    if (p == m.size()) continue;
    std::swap(m[p], m[top]);
    const Rational by = m[top][c];
    for (auto& v : m[top]) v = v / by;
    for (size_t r = 0; r < m.size(); ++r) {
      if (r == top || !m[r][c].sign()) continue;
      const Rational f = m[r][c];
      for (size_t k = c; k < width; ++k) m[r][k] = m[r][k] - f * m[top][k];
    }
    ++top;
  }
  m.resize(top);
  return m;
}

Space space(const std::vector<Row>& rows) {
  std::vector<Vector> m;
  for (auto& r : rows) m.emplace_back(r.begin(), r.end());
  return reduced(std::move(m));
}

int rank(const std::vector<Row>& rows) { return int(space(rows).size()); }

Space kernel(const Space& rows, size_t dimension) {
  std::vector<int> lead(dimension, -1);
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t c = 0; c < dimension; ++c)
      if (rows[r][c].sign()) {
        lead[c] = int(r);
        break;
      }
  std::vector<Vector> out;
  for (size_t free = 0; free < dimension; ++free) {
    if (lead[free] >= 0) continue;
    Vector v(dimension, 0);
    v[free] = 1;
    for (size_t c = 0; c < dimension; ++c)
      if (lead[c] >= 0) v[c] = -rows[size_t(lead[c])][free];
    out.push_back(std::move(v));
  }
  return reduced(std::move(out));
}

Space sum(const Space& a, const Space& b) {
  std::vector<Vector> m = a;
  m.insert(m.end(), b.begin(), b.end());
  return reduced(std::move(m));
}

Space intersection(const Space& a, const Space& b, size_t dimension) {
  return kernel(sum(kernel(a, dimension), kernel(b, dimension)), dimension);
}

int image_rank(const Space& rows, const Space& of) {
  std::vector<Vector> images;
  for (auto& v : of) {
    Vector y;
    for (auto& r : rows) {
      Rational x = 0;
      for (size_t k = 0; k < v.size(); ++k) x = x + r[k] * v[k];
      y.push_back(x);
    }
    images.push_back(std::move(y));
  }
  return rows.empty() ? 0 : int(reduced(std::move(images)).size());
}

Result<std::vector<Space>> lattice(const std::vector<Space>& generators, size_t dimension, size_t most) {
  std::vector<Space> all;
  auto add = [&](Space s) {
    if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(std::move(s));
  };
  for (auto& g : generators) add(g);
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      Space meet = intersection(all[a], all[b], dimension), join = sum(all[a], all[b]);
      add(std::move(meet));
      add(std::move(join));
      if (all.size() > most)
        return Refusal{"the subgroups of the views do not close within " + std::to_string(most)};
    }
  return all;
}

void Groups::tie(int a, int b) {
  const int x = of_[size_t(a)], y = of_[size_t(b)];
  for (int& g : of_)
    if (g == std::max(x, y)) g = std::min(x, y);
}

void Groups::tie(const Row& r) {
  int first = -1;
  for (size_t a = 0; a < r.size(); ++a)
    if (r[a]) {
      if (first < 0) first = int(a);
      tie(first, int(a));
    }
}

std::vector<std::vector<int>> Groups::all() const {
  std::vector<std::vector<int>> out;
  for (size_t g = 0; g < of_.size(); ++g) {
    std::vector<int> members;
    for (size_t a = 0; a < of_.size(); ++a)
      if (of_[a] == int(g)) members.push_back(int(a));
    if (!members.empty()) out.push_back(std::move(members));
  }
  return out;
}

Vector unit(size_t k, size_t dimension) {
  Vector v(dimension, 0);
  v[k] = 1;
  return v;
}

std::vector<Mixed> mixed(const std::vector<Space>& maps, size_t dimension) {
  Groups groups(dimension);
  for (auto& m : maps)
    for (auto& v : m) {
      int first = -1;
      for (size_t k = 0; k < dimension; ++k)
        if (v[k].sign()) {
          if (first < 0) first = int(k);
          groups.tie(first, int(k));
        }
    }
  std::vector<Mixed> out;
  for (auto& group : groups.all()) {
    Mixed g{group, {}};
    for (auto& m : maps) {
      std::vector<Vector> part;
      for (auto& v : m) {
        Vector p;
        for (int a : group) p.push_back(v[size_t(a)]);
        if (std::any_of(p.begin(), p.end(), [](const Rational& x) { return x.sign() != 0; }))
          part.push_back(std::move(p));
      }
      g.parts.push_back(reduced(std::move(part)));
    }
    out.push_back(std::move(g));
  }
  return out;
}

} // namespace tang::bound
