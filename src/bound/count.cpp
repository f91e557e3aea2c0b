#include "tang/bound/count.hpp"

#include <algorithm>
#include <set>

#include "tang/base/number.hpp"
#include "tang/bound/space.hpp"

namespace tang::bound {

namespace {
constexpr int64_t most_steps = 30'000'000, most_stored = 2'000'000;

struct TooMany {};

struct Limit {
  Row k;
  int64_t c = 0;

  bool mentions(int a) const { return k[size_t(a)] != 0; }
};

using Piece = std::vector<Limit>;

Result<std::vector<Piece>> pieces_of(size_t loops, const ir::Domain& domain) {
  std::vector<Piece> out;
  for (auto& conj : ir::disjoint(domain)) {
    Piece p;
    for (auto& f : conj) {
      if (!f.args.empty()) return Refusal{"which points are live depends on index data"};
      if (!f.c.is_constant()) return Refusal{"an extent is not bound"};
      Limit b{Row(loops, 0), f.c.value()};
      for (auto& [a, k] : f.axes) b.k[size_t(a)] = k;
      p.push_back(std::move(b));
    }
    out.push_back(std::move(p));
  }
  return out;
}

// Points of some loops, by walking them: kept loops are counted, the others only have to exist.
class Walk {
public:
  Walk(const std::vector<int64_t>& extents, std::vector<Piece> any, std::vector<int> order, size_t kept)
      : extents_(extents), any_(std::move(any)), order_(std::move(order)), kept_(kept),
        at_(extents.size(), 0) {}

  int64_t count() { return from(0); }

  template <class F> void each(F visit) { // every live point
    if (order_.empty()) return visit(at_);
    walk(0, visit);
  }

private:
  // What the bounds of one piece leave for the loop at this depth, later loops being as favourable as they
  // can.
  std::pair<int64_t, int64_t> left(const Piece& p, size_t depth) const {
    const int axis = order_[depth];
    int64_t lo = 0, hi = extents_[size_t(axis)] - 1;
    for (auto& b : p) {
      int64_t rest = b.c;
      for (size_t d = 0; d < order_.size(); ++d) {
        const int64_t k = b.k[size_t(order_[d])];
        if (d < depth)
          rest += k * at_[size_t(order_[d])];
        else if (d > depth && k > 0)
          rest += k * (extents_[size_t(order_[d])] - 1);
      }
      const int64_t k = b.k[size_t(axis)];
      if (k == 0 && rest < 0) return {0, -1};
      if (k > 0) lo = std::max(lo, ceil_div(-rest, k));
      if (k < 0) hi = std::min(hi, floor_div(rest, -k));
    }
    return {lo, hi};
  }

  std::pair<int64_t, int64_t> span(size_t depth) {
    if (++steps_ > most_steps) throw TooMany{};
    int64_t lo = 0, hi = -1;
    for (auto& p : any_) {
      const auto [l, h] = left(p, depth);
      if (l > h) continue;
      if (lo > hi)
        lo = l, hi = h;
      else
        lo = std::min(lo, l), hi = std::max(hi, h);
    }
    return {lo, hi};
  }

  bool holds() const {
    return std::any_of(any_.begin(), any_.end(), [&](const Piece& p) {
      return std::all_of(p.begin(), p.end(), [&](const Limit& b) {
        int64_t v = b.c;
        for (int a : order_) v += b.k[size_t(a)] * at_[size_t(a)];
        return v >= 0;
      });
    });
  }

  int64_t from(size_t depth) {
    if (depth == order_.size()) return holds();
    const auto [lo, hi] = span(depth);
    if (lo > hi) return 0;
    const bool counted = depth < kept_;
    if (depth + 1 == order_.size() && any_.size() == 1) return counted ? hi - lo + 1 : 1;
    int64_t n = 0;
    for (int64_t v = lo; v <= hi; ++v) {
      at_[size_t(order_[depth])] = v;
      n += from(depth + 1);
      if (!counted && n) return 1;
    }
    return n;
  }

  template <class F> void walk(size_t depth, F& visit) {
    if (depth == order_.size()) {
      if (holds()) visit(at_);
      return;
    }
    const auto [lo, hi] = span(depth);
    for (int64_t v = lo; v <= hi; ++v) {
      at_[size_t(order_[depth])] = v;
      walk(depth + 1, visit);
    }
  }

  const std::vector<int64_t>& extents_;
  std::vector<Piece> any_;
  std::vector<int> order_;
  size_t kept_;
  std::vector<int64_t> at_;
  int64_t steps_ = 0;
};

// Loops that bounds or rows tie together.
std::vector<std::vector<int>> tied(size_t loops, const std::vector<Piece>& any,
                                   const std::vector<Row>& rows) {
  Groups groups(loops);
  int first = -1;
  for (auto& p : any) {
    for (auto& b : p) {
      groups.tie(b.k);
      if (any.size() < 2) continue;
      for (size_t a = 0; a < loops; ++a)
        if (b.k[a]) {
          if (first < 0) first = int(a);
          groups.tie(first, int(a));
        }
    }
  }
  for (auto& r : rows) groups.tie(r);
  return groups.all();
}

int64_t product(const std::vector<int64_t>& extents, const std::vector<int>& axes) {
  int64_t n = 1;
  for (int a : axes) {
    auto v = mul_checked(n, extents[size_t(a)]);
    if (!v) throw Overflow{};
    n = *v;
  }
  return n;
}

// The number of images of one group of tied loops.
int64_t images(const std::vector<int64_t>& extents, const std::vector<Piece>& all,
               const std::vector<int>& axes, const std::vector<Row>& all_rows) {
  std::vector<Piece> any;
  bool bounded = false;
  for (auto& p : all) {
    Piece own;
    for (auto& b : p)
      if (std::any_of(axes.begin(), axes.end(), [&](int a) { return b.mentions(a); })) own.push_back(b);
    bounded |= !own.empty();
    any.push_back(std::move(own));
  }
  std::vector<Row> rows;
  std::vector<int> used, rest;
  for (auto& r : all_rows)
    if (std::any_of(axes.begin(), axes.end(), [&](int a) { return r[size_t(a)] != 0; })) rows.push_back(r);
  for (int a : axes) {
    const bool in_row =
        std::any_of(rows.begin(), rows.end(), [&](const Row& r) { return r[size_t(a)] != 0; });
    (in_row ? used : rest).push_back(a);
  }
  auto smaller = [&](int a, int b) { return extents[size_t(a)] < extents[size_t(b)]; };
  std::stable_sort(used.begin(), used.end(), smaller);
  std::stable_sort(rest.begin(), rest.end(), smaller);
  if (rank(rows) == int(used.size())) {
    if (!bounded) return product(extents, used);
    std::vector<int> order = used;
    order.insert(order.end(), rest.begin(), rest.end());
    return Walk(extents, any, order, used.size()).count();
  }
  if (!bounded && rows.size() == 1) {
    std::vector<std::pair<int64_t, int64_t>> terms;
    for (int a : used) terms.emplace_back(rows[0][size_t(a)], extents[size_t(a)]);
    auto n = count_sums(terms);
    if (!n) throw TooMany{};
    return *n;
  }
  std::vector<int> order = used;
  if (bounded) order.insert(order.end(), rest.begin(), rest.end());
  std::set<std::vector<int64_t>> seen;
  int64_t walked = 0;
  Walk(extents, any, order, order.size()).each([&](const std::vector<int64_t>& at) {
    if (++walked > most_stored) throw TooMany{};
    std::vector<int64_t> v;
    for (auto& r : rows) {
      int64_t x = 0;
      for (int a : used) x += r[size_t(a)] * at[size_t(a)];
      v.push_back(x);
    }
    seen.insert(std::move(v));
  });
  return int64_t(seen.size());
}
} // namespace

Result<int64_t> count_images(const std::vector<int64_t>& extents, const ir::Domain& domain,
                             const std::vector<Row>& rows) {
  if (std::any_of(extents.begin(), extents.end(), [](int64_t n) { return n == 0; })) return int64_t(0);
  auto any = pieces_of(extents.size(), domain);
  if (!any) return Refusal{any.why()};
  for (auto& p : *any)
    for (auto& b : p)
      if (b.c < 0 && std::all_of(b.k.begin(), b.k.end(), [](int64_t k) { return k == 0; })) p = {b};
  any->erase(std::remove_if(any->begin(), any->end(),
                            [](const Piece& p) {
                              return p.size() == 1 && p[0].c < 0 &&
                                     std::all_of(p[0].k.begin(), p[0].k.end(),
                                                 [](int64_t k) { return k == 0; });
                            }),
             any->end());
  if (any->empty()) return int64_t(0);
  try {
    int64_t n = 1;
    for (auto& axes : tied(extents.size(), *any, rows)) {
      auto v = mul_checked(n, images(extents, *any, axes, rows));
      if (!v) return Refusal{"the count does not fit in 64 bits"};
      n = *v;
    }
    return n;
  } catch (const TooMany&) {
    return Refusal{"too many points to count one by one"};
  } catch (const Overflow&) { return Refusal{"the count does not fit in 64 bits"}; }
}

Result<int64_t> count_points(const std::vector<int64_t>& extents, const ir::Domain& domain) {
  std::vector<Row> rows;
  for (size_t a = 0; a < extents.size(); ++a) {
    rows.emplace_back(extents.size(), 0);
    rows.back()[a] = 1;
  }
  return count_images(extents, domain, rows);
}

Result<int64_t> count_sums(std::vector<std::pair<int64_t, int64_t>> terms) {
  // With coefficients ascending, a block of consecutive values stays one while each step is at most its
  // length.
  for (auto& t : terms) t.first = t.first < 0 ? -t.first : t.first;
  std::sort(terms.begin(), terms.end());
  std::vector<std::pair<int64_t, int64_t>> runs{{0, 0}}; // disjoint, ascending, inclusive
  for (auto& [k, n] : terms) {
    if (k == 0 || n == 1) continue;
    if (runs.size() == 1 && k <= runs[0].second + 1) {
      auto reach = mul_checked(k, n - 1);
      if (!reach) return Refusal{"the count does not fit in 64 bits"};
      runs[0].second += *reach;
      continue;
    }
    if (int64_t(runs.size()) * n > most_stored) return Refusal{"too many values to count one by one"};
    std::vector<std::pair<int64_t, int64_t>> all;
    for (int64_t x = 0; x < n; ++x)
      for (auto& r : runs) all.emplace_back(r.first + k * x, r.second + k * x);
    std::sort(all.begin(), all.end());
    runs.clear();
    for (auto& r : all) {
      if (!runs.empty() && r.first <= runs.back().second + 1)
        runs.back().second = std::max(runs.back().second, r.second);
      else
        runs.push_back(r);
    }
  }
  int64_t total = 0;
  for (auto& r : runs) total += r.second - r.first + 1;
  return total;
}

} // namespace tang::bound
