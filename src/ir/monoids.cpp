#include "tang/ir/monoids.hpp"

#include <limits>

#include "tang/expr/simplify.hpp"

namespace tang::ir {

using expr::E;
using Es = std::vector<E>;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
const Value lowest = expr::real(-inf), nowhere = expr::whole(INT64_MAX);

template <class F> MonoidSpec single(const char* name, Value identity, F combine) {
  return {
      name, {identity}, [combine](Pool&, const Es& a, const Es& b) { return Es{combine(a[0], b[0])}; }, true};
}

// Does (x, i) come before (y, j)? A total order on values with NaN on top, ties to the smaller index.
E wins(E x, E i, E y, E j, bool largest) {
  E better = largest ? x > y : x < y, tie = i <= j;
  E both_numbers = better || (x == y && tie);
  return select(is_nan(x), !is_nan(y) || tie, !is_nan(y) && both_numbers);
}

MonoidSpec arg_extreme(const char* name, bool largest) {
  return {name,
          {largest ? lowest : expr::real(inf), nowhere},
          [largest](Pool&, const Es& a, const Es& b) {
            E left = wins(a[0], a[1], b[0], b[1], largest);
            return Es{select(left, a[0], b[0]), select(left, a[1], b[1])};
          },
          true};
}
} // namespace

const MonoidSpec& sum_of_reals() {
  static const MonoidSpec m = single("sum", expr::real(0), [](E a, E b) { return a + b; });
  return m;
}

const MonoidSpec& sum_of_index() {
  static const MonoidSpec m = single("count", expr::whole(0), [](E a, E b) { return a + b; });
  return m;
}

const MonoidSpec& max_of_reals() {
  static const MonoidSpec m = single("max", lowest, [](E a, E b) { return expr::max(a, b); });
  return m;
}

const MonoidSpec& min_of_reals() {
  static const MonoidSpec m = single("min", expr::real(inf), [](E a, E b) { return expr::min(a, b); });
  return m;
}

const MonoidSpec& any_of() {
  static const MonoidSpec m = single("any", expr::truth(false), [](E a, E b) { return a || b; });
  return m;
}

const MonoidSpec& all_of() {
  static const MonoidSpec m = single("all", expr::truth(true), [](E a, E b) { return a && b; });
  return m;
}

MonoidSpec online_softmax(int sums) {
  MonoidSpec m{"online_softmax", {lowest}, {}, true};
  m.identity.resize(size_t(sums) + 1, expr::real(0));
  m.combine = [sums](Pool& p, const Es& a, const Es& b) {
    E top = expr::max(a[0], b[0]), low = expr::lit(p, -inf), zero = expr::lit(p, 0);
    auto act = [&](E from) { return select(from == low, zero, expr::exp(from - top)); };
    E left = act(a[0]), right = act(b[0]);
    Es out{top};
    for (int c = 1; c <= sums; ++c) {
      E x = left * a[size_t(c)], y = right * b[size_t(c)];
      out.push_back(x + y);
    }
    return out;
  };
  return m;
}

const MonoidSpec& argmax() {
  static const MonoidSpec m = arg_extreme("argmax", true);
  return m;
}

const MonoidSpec& argmin() {
  static const MonoidSpec m = arg_extreme("argmin", false);
  return m;
}

const MonoidSpec& welford() {
  static const MonoidSpec m{"welford",
                            {expr::real(0), expr::real(0), expr::real(0)},
                            [](Pool&, const Es& a, const Es& b) {
                              E count = a[0] + b[0], gap = b[1] - a[1], share = ratio(b[0], count);
                              return Es{count, a[1] + gap * share, a[2] + b[2] + gap * gap * a[0] * share};
                            },
                            true};
  return m;
}

MonoidSpec topk(int k) {
  MonoidSpec m{"top" + std::to_string(k), {}, {}, true};
  m.identity.assign(size_t(k), lowest);
  m.identity.resize(size_t(2 * k), nowhere);
  m.combine = [k](Pool&, const Es& a, const Es& b) {
    Es out = a;
    const size_t n = size_t(k);
    // Each entry of b sinks into a; entry j ends at place j or below, so the network is a triangle.
    for (size_t j = 0; j < n; ++j) {
      E value = b[j], at = b[n + j];
      for (size_t r = j; r < n; ++r) {
        E stays = wins(out[r], out[n + r], value, at, true);
        E v = select(stays, out[r], value), i = select(stays, out[n + r], at);
        if (r + 1 < n) {
          E pushed = select(stays, value, out[r]), pushed_at = select(stays, at, out[n + r]);
          value = pushed;
          at = pushed_at;
        }
        out[r] = v;
        out[n + r] = i;
      }
    }
    return out;
  };
  return m;
}

std::vector<MonoidSpec> all_monoids() {
  return {sum_of_reals(), sum_of_index(), max_of_reals(),    min_of_reals(),
          any_of(),       all_of(),       online_softmax(1), online_softmax(2),
          argmax(),       argmin(),       welford(),         topk(1),
          topk(2)};
}

std::vector<MonoidSpec> more_proved_monoids() {
  const Value zero = expr::real(0), one = expr::real(1);
  MonoidSpec affine{"affine",
                    {one, zero},
                    [](Pool&, const Es& a, const Es& b) {
                      E slope = b[0] * a[0], moved = b[0] * a[1];
                      return Es{slope, moved + b[1]};
                    },
                    false};
  MonoidSpec segmented{"segmented_sum",
                       {expr::truth(false), zero},
                       [](Pool&, const Es& a, const Es& b) {
                         E starts = a[0] || b[0], sum = a[1] + b[1];
                         return Es{starts, select(b[0], b[1], sum)};
                       },
                       false};
  MonoidSpec tallest{"count_of_max",
                     {lowest, zero},
                     [](Pool& p, const Es& a, const Es& b) {
                       E top = expr::max(a[0], b[0]), none = expr::lit(p, 0);
                       E left = select(a[0] == top, a[1], none), right = select(b[0] == top, b[1], none);
                       return Es{top, left + right};
                     },
                     true};
  return {single("product", one, [](E a, E b) { return a * b; }), affine, segmented, tallest};
}

Monoid traced(Pool& p, const MonoidSpec& m, size_t first) {
  Monoid out{m.name, m.identity, {}, m.commutative};
  Es left, right;
  for (size_t c = 0; c < m.identity.size(); ++c) {
    const auto type = m.identity[c].type;
    left.push_back({&p, p.leaf(Op::var, type, 2 * int64_t(first + c))});
    right.push_back({&p, p.leaf(Op::var, type, 2 * int64_t(first + c) + 1)});
  }
  for (auto& e : m.combine(p, left, right)) out.combine.push_back(e.id);
  return out;
}

namespace {
// Are components `first` .. of m a row of the table?
bool is_row(Pool& p, const Monoid& m, size_t first, const MonoidSpec& row) {
  if (first + row.identity.size() > m.size() || (m.commutative && !row.commutative)) return false;
  for (size_t c = 0; c < row.identity.size(); ++c)
    if (!identical(m.identity[first + c], row.identity[c])) return false;
  const Monoid r = traced(p, row, first);
  for (size_t c = 0; c < r.size(); ++c)
    if (r.combine[c] != m.combine[first + c] &&
        expr::simplify(p, r.combine[c]) != expr::simplify(p, m.combine[first + c]))
      return false;
  return true;
}

bool is_proved_from(Pool& p, const Monoid& m, size_t first) {
  if (first == m.size()) return true;
  auto rest = [&](const MonoidSpec& row) {
    return is_row(p, m, first, row) && is_proved_from(p, m, first + row.identity.size());
  };
  const int left = int(m.size() - first);
  for (auto& row : all_monoids())
    if (rest(row)) return true;
  for (auto& row : more_proved_monoids())
    if (rest(row)) return true;
  for (int sums = 3; sums < left; ++sums)
    if (rest(online_softmax(sums))) return true;
  for (int k = 3; 2 * k <= left; ++k)
    if (rest(topk(k))) return true;
  return false;
}
} // namespace

bool is_proved(const Pool& from, const Monoid& m) {
  Pool p;
  Monoid own = m;
  for (Id& e : own.combine)
    e = expr::transplant(from, e, p, [&](const expr::Term& t) { return p.leaf(t.op, t.type, t.whole); });
  return own.size() && is_proved_from(p, own, 0);
}

bool is_proved(const MonoidSpec& m) {
  Pool p;
  return is_proved(p, traced(p, m));
}

Scalar logsumexp(const Over& over, const Scalar& e, Where where) {
  const auto s = fold(online_softmax(1), over, {e, Scalar(1.0)}, where);
  return s[0] + log(s[1]);
}

std::pair<std::vector<Scalar>, std::vector<Scalar>> top(int k, const Axis& over, const Scalar& e,
                                                        Where where) {
  if (k < 1 || k > 64)
    throw Error(where, "top of " + std::to_string(k) + " values", {{"between 1 and 64 are supported", {}}},
                "sort in several rounds, or ask for fewer");
  Builder& b = *e.builder();
  std::vector<Scalar> lift{e};
  lift.resize(size_t(k), Scalar(&b, b.surface_pool().literal(lowest)));
  lift.push_back(iota(over));
  lift.resize(size_t(2 * k), index_literal(b, INT64_MAX));
  const auto s = fold(topk(k), over, lift, where);
  std::vector<Scalar> values(s.begin(), s.begin() + k), indices;
  for (int r = 0; r < k; ++r) {
    const Scalar& at = s[size_t(k + r)];
    indices.push_back(select(at == index_literal(b, INT64_MAX), index_literal(b, -1), at));
  }
  return {values, indices};
}

} // namespace tang::ir
