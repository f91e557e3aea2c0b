// Shapes of graphs that rules and groupings are for: contractions and what reads them, softmax as a textbook
// has it, row statistics, padded windows, sums with a common factor, siblings. Random nodes seldom make them.
#include <functional>

#include "tang/fuzz/generator.hpp"
#include "tang/fuzz/writer.hpp"

namespace tang::fuzz {

using namespace ir;

void Generator::pattern(Graph& g) {
  const Extent i = extent(), j = extent(), k = extent();
  const double ni = double(std::max<int64_t>(1, size_of(i))), nj = double(std::max<int64_t>(1, size_of(j))),
               nk = double(std::max<int64_t>(1, size_of(k)));
  auto range_of = [&](Port p) { return ranges(g).at(p); };
  auto fine = [&](Port p) { return range_of(p).size() <= (integer_ ? 64 : 8); }; // else sums grow too far
  auto cut = [&](Writer& w, E e, int x, int y) {                                 // a mask, often none
    switch (c_.below(5)) {
    case 1: return w.masked({{axis(x) - axis(y)}}, e);
    case 2: return w.masked({{axis(x) - axis(y), axis(y) - axis(x) + constant(int64_t(c_.below(4)))}}, e);
    case 3: return w.masked({{axis(y) - constant(int64_t(c_.below(3)))}}, e);
    default: return e;
    }
  };
  auto bend = [&](E e, const Range& r) -> Term {
    switch (c_.below(integer_ ? 3 : 6)) {
    case 1: return {expr::relu(e), {std::max(0.0, r.lo), std::max(0.0, r.hi), false, r.sharp}};
    case 2: return limited({e, r}, integer_ ? 64 : 4);
    case 3: return {expr::tanh(e), {-1, 1, false, false}};
    case 4: return {e * 0.5, {r.lo / 2, r.hi / 2, false, false}};
    case 5:
      return {expr::silu(limited({e, r}, 16).e), {-1, std::max(1.0, std::min(r.hi, 16.0)), false, false}};
    default: return {e, r};
    }
  };
  auto summed = [&](const Range& r, double n) {
    return Range{std::min(0.0, r.lo * n), std::max(0.0, r.hi * n), false, integer_ && r.sharp};
  };
  switch (c_.below(integer_ ? 5 : 7)) {
  case 0:
  case 1: { // a contraction, perhaps folded again
    const bool turned = c_.below(2);
    const Port x = tensor(g, Type::real, {i, k}),
               y = tensor(g, Type::real, turned ? std::vector<Extent>{k, j} : std::vector<Extent>{j, k});
    if (!fine(x) || !fine(y)) return;
    Writer w(g, {i, j}, {k});
    E e = w.at(x, {0, 2}) * w.at(y, turned ? std::vector<int>{2, 1} : std::vector<int>{1, 2});
    Range r = product(range_of(x), range_of(y));
    r.sharp = integer_;
    e = cut(w, e, c_.below(2) ? 0 : 1, 2);
    const Port dot = add(g, w.folded(sum_of_reals(), e), {summed(r, nk)});
    Writer b(g, {i, j});
    const Term bent = bend(b.at(dot, {0, 1}), range_of(dot));
    const Port s = add(g, b.of(cut(b, bent.e, 0, 1)), {bent.range});
    if (!c_.below(2)) return;
    const Extent l = extent();
    const Port z = tensor(g, Type::real, {j, l});
    if (range_of(s).size() * range_of(z).size() * nj > most()) return;
    Writer o(g, {i, l}, {j});
    Range p = product(range_of(s), range_of(z));
    p.sharp = integer_;
    const E v = o.at(s, {0, 2}) * o.at(z, {2, 1});
    add(g, o.folded(sum_of_reals(), v), {summed(p, nj)});
    if (!c_.below(2)) return; // the same score folded the other way
    const Port q = tensor(g, Type::real, {i, l});
    if (range_of(s).size() * range_of(q).size() * ni > most()) return;
    Writer t(g, {j, l}, {i});
    Range pq = product(range_of(s), range_of(q));
    pq.sharp = integer_;
    const E u = t.at(s, {2, 0}) * t.at(q, {2, 1});
    add(g, t.folded(sum_of_reals(), u), {summed(pq, ni)});
    return;
  }
  case 2: { // a padded window
    const Extent taps = Extent(2 + int(c_.below(3)));
    const Port x = tensor(g, Type::real, {k, i}), y = tensor(g, Type::real, {j, k, taps});
    if (!fine(x) || !fine(y)) return;
    Writer w(g, {j, i}, {k, taps});
    const int64_t stride = 1 + int64_t(c_.below(2)), spread = 1 + int64_t(c_.below(2));
    const Form f = stride * axis(1) + spread * axis(3) - constant(int64_t(c_.below(3)));
    Conj c;
    insert(c, f);
    insert(c, constant(i - Extent(1)) - f);
    static const std::vector<double> pads{0, 0, 1};
    const E e = w.within({c}, w.through(x, {axis(2), f}), c_.of(pads)) * w.at(y, std::vector<int>{0, 2, 3});
    Range r = product(joined(range_of(x), {0, 1}), range_of(y));
    r.sharp = integer_;
    add(g, w.folded(sum_of_reals(), e), {summed(r, nk * 4)});
    return;
  }
  case 3: { // sums with a common factor, and siblings
    const Port x = tensor(g, Type::real, {i, k}), y = tensor(g, Type::real, {i, k}),
               f = tensor(g, Type::real, {i});
    if (!fine(x) || !fine(y) || !fine(f)) return;
    Writer w(g, {i}, {k});
    const Range fr = range_of(f), xr = range_of(x), yr = range_of(y);
    const E c = w.at(f, {0});
    E e = c * w.at(x, {0, 1});
    Range r = product(fr, xr);
    if (c_.below(2))
      e = e + c * w.at(y, {0, 1}),
      r = {-fr.size() * (xr.size() + yr.size()), fr.size() * (xr.size() + yr.size()), false, true};
    r.sharp = integer_;
    const Port a = add(g, w.folded(sum_of_reals(), e), {summed(r, nk)});
    Writer v(g, {i}, {k});
    const Port b = add(g, v.folded(max_of_reals(), v.at(y, {0, 1})), {{yr.lo, yr.hi, true, yr.sharp}});
    Writer m(g, {i, k});
    const Term top = finite({m.at(b, {0}), range_of(b)});
    const Term left = limited({m.at(a, {0}), range_of(a)}, most() / 4);
    add(g, m.of(left.e + top.e + m.at(y, {0, 1})),
        {{-left.range.size() - top.range.size() - yr.size(), left.range.size() + top.range.size() + yr.size(),
          false, integer_}});
    return;
  }
  case 4: { // a fold over two axes of a product: folds may be swapped, factors taken out
    const Port x = tensor(g, Type::real, {i, k}), y = tensor(g, Type::real, {k, j}),
               z = tensor(g, Type::real, {j});
    if (!fine(x) || !fine(y) || !fine(z) ||
        range_of(x).size() * range_of(y).size() * range_of(z).size() * nk * nj > most())
      return;
    Writer w(g, {i}, {k, j});
    Range r = product(product(range_of(x), range_of(y)), range_of(z));
    r.sharp = integer_;
    add(g, w.folded(sum_of_reals(), w.at(x, {0, 1}) * w.at(y, {1, 2}) * w.at(z, {2})), {summed(r, nk * nj)});
    return;
  }
  case 5: { // softmax, as a textbook has it, of scores of any kind
    const Port q = tensor(g, Type::real, {i, k}), key = tensor(g, Type::real, {j, k});
    if (!fine(q) || !fine(key)) return;
    Writer w(g, {i, j}, {k});
    const E d = w.at(q, {0, 2}) * w.at(key, {1, 2});
    Range r = product(range_of(q), range_of(key));
    r.sharp = false;
    const Port dot = add(g, w.folded(sum_of_reals(), d), {summed(r, nk)});
    Writer b(g, {i, j});
    const Term bent = limited(bend(b.at(dot, {0, 1}), range_of(dot)), 16);
    E score = bent.e;
    const bool pad = c_.chance(4);
    if (pad)
      score = b.within({{axis(0) - axis(1)}}, score, -inf);
    else
      score = cut(b, score, 0, 1);
    const Port s = add(g, b.of(score), {{bent.range.lo, bent.range.hi, pad, false}});
    Writer m(g, {i}, {j});
    const Port top = add(g, m.folded(max_of_reals(), m.at(s, {0, 1})), {{-16, 16, true, false}});
    auto weight = [&](Writer& x, int a, int f) {
      const E t = x.at(top, {a}), low = expr::lit(g.pool, -inf), v = x.at(s, {a, f}) - t;
      const auto guard = c_.below(3);
      return expr::exp(guard == 0 ? v : expr::only(guard == 1 ? low < t : !(t == low), v));
    };
    Writer l(g, {i}, {j});
    const Port total = add(g, l.folded(sum_of_reals(), weight(l, 0, 1)), {{0, nj, false, false}});
    const Extent cols = extent();
    const Port v = tensor(g, Type::real, {j, cols});
    const double vs = range_of(v).size();
    const bool inside = c_.below(2);
    Writer o(g, {i, cols}, {j});
    E body = weight(o, 0, 2) * o.at(v, {2, 1});
    if (inside) body = expr::ratio(body, o.at(total, {0}));
    const Port acc = add(g, o.folded(sum_of_reals(), body), {{-vs * nj, vs * nj, false, false}});
    if (inside) return;
    Writer out(g, {i, cols});
    add(g, out.of(expr::ratio(out.at(acc, {0, 1}), out.at(total, {0}))), {{-vs * nj, vs * nj, false, false}});
    return;
  }
  default: { // a row statistic and what is made of it
    const Port x = tensor(g, Type::real, {i, k});
    const double s = range_of(x).size();
    Writer m(g, {i}, {k});
    const Port mean = add(g, m.folded(sum_of_reals(), m.at(x, {0, 1}) * (1 / nk)), {{-s, s, false, false}});
    Writer v(g, {i}, {k});
    const E gap = v.at(x, {0, 1}) - v.at(mean, {0});
    const Port variance =
        add(g, v.folded(sum_of_reals(), expr::square(gap) * (1 / nk)), {{0, 4 * s * s, false, false}});
    Writer o(g, {i, k});
    const E scale = expr::recip(expr::sqrt(o.at(variance, {0}) + 0.01));
    add(g, o.of((o.at(x, {0, 1}) - o.at(mean, {0})) * scale), {{-20 * s, 20 * s, false, false}});
    return;
  }
  }
}

} // namespace tang::fuzz
