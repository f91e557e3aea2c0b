// Graphs that one rewrite rule each is for and that random nodes all but never make, with the variations that
// must stop it: a guard around padded reads, index arithmetic, an output computed again inside a fold, the
// state of an absorbing fold, keys that are sorted.

#include "tang/fuzz/writer.hpp"

namespace tang::fuzz {

using namespace ir;

namespace {
// Where x lies in [low, low + n).
Conj between(const Form& x, int64_t low, const Extent& n) {
  Conj c;
  insert(c, x - constant(low));
  insert(c, constant(n - Extent(1)) + constant(low) - x);
  return c;
}
} // namespace

// or_else(only(outer, f(padded read)), f(pad)): the outer guard may go unless a read hits outside it.
void Generator::guarded_twice(Graph& g) {
  const Extent n = extent();
  const Port x = tensor(g, Type::real, {n});
  const Range r = ranges(g).at(x);
  if (size_of(n) < 1 || r.size() * 4 > most()) return;
  const int64_t before = int64_t(c_.below(3)), after = int64_t(c_.below(3));
  Writer w(g, {n + Extent(before + after)});
  static const std::vector<double> pads{0, 1, -1};
  const double pad = c_.of(pads);
  const uint32_t kind = c_.below(3), other = c_.below(8);
  auto f = [&](E e) {
    return kind == 0 ? expr::relu(e) : kind == 1 ? e + e : expr::max(e, expr::lit_like(e, -1)) * 2;
  };
  const double of_pad = (kind == 0   ? std::max(0.0, pad)
                         : kind == 1 ? 2 * pad
                                     : 2 * std::max(pad, -1.0)) +
                        (other == 7 ? 1 : 0); // another pad: the guard has to stay
  const Form at = axis(0) - constant(before);
  const Domain outer = {between(axis(0), before + (other == 6 ? 1 : 0), n)};
  const E inner = w.within({between(at, 0, n)}, w.through(x, {at}), pad);
  const E body = expr::or_else(w.masked(outer, f(inner)), expr::lit(g.pool, of_pad));
  const double most_of = 2 * std::max(r.size(), 1.0) + 1;
  kept_.push_back(add(g, w.of(body), {{-most_of, most_of, false, integer_ && r.sharp}}));
}

// Rows of h * d columns: split by division and remainder, or made by a map that merges two dimensions.
void Generator::reshaped(Graph& g) {
  const int64_t h = 2 + int64_t(c_.below(3)), d = 2 + int64_t(c_.below(4));
  const Extent i = extent(), wide(h * d);
  if (c_.below(2)) {
    const Port x = tensor(g, Type::real, {i, Extent(h), Extent(d)}), y = tensor(g, Type::real, {wide});
    const Range r = product(ranges(g).at(x), ranges(g).at(y));
    if (r.size() * double(h * d) > most()) return;
    auto index = [&](Op op, double most_of) {
      Writer w(g, {wide});
      const E k = w.coordinate(0);
      return add(g, w.of(expr::apply(op, k, expr::lit_like(k, double(d)))), {{0, most_of}});
    };
    const Port head = index(Op::div, double(h - 1)), within = index(Op::mod, double(d - 1));
    Writer w(g, {i}, {wide});
    const Form a = w.index_at(head, {1}), b = w.index_at(c_.below(6) < 5 ? within : head, {1});
    if (h > d && w.c.args.back().from == head) return;
    const E e = w.through(x, {axis(0), a, b}) * w.at(y, {1});
    const double size = r.size() * double(h * d);
    kept_.push_back(add(g, w.folded(sum_of_reals(), e), {{-size, size, false, integer_ && r.sharp}}));
    return;
  }
  const Extent n = extent();
  const Port x = tensor(g, Type::real, {i, Extent(h), Extent(d)}), y = tensor(g, Type::real, {wide, n});
  const Range r = product(ranges(g).at(x), ranges(g).at(y));
  const double size = r.size() * double(h * d);
  if (size > most()) return;
  Writer m(g, {i, Extent(h), Extent(d)});
  const E moved = m.at(x, {0, 1, 2});
  m.c.outs[0].view = {axis(0), axis(1, d) + axis(2)};
  m.c.outs[0].shape = {i, wide};
  const Port merged = add(g, m.of(moved), {ranges(g).at(x)});
  Writer w(g, {i, n}, {wide});
  const E e = expr::or_else(w.at(merged, {0, 2}), expr::lit(g.pool, 0)) * w.at(y, {2, 1});
  kept_.push_back(add(g, w.folded(sum_of_reals(), e), {{-size, size, false, integer_ && r.sharp}}));
}

// An output that is a map of two row sums, and a fold over rows whose term computes it again.
void Generator::computed_again(Graph& g) {
  const Extent i = extent(), k = extent(), l = extent();
  const Port x = tensor(g, Type::real, {i, k}), y = tensor(g, Type::real, {i, l});
  const double nk = double(std::max<int64_t>(1, size_of(k))), ni = double(std::max<int64_t>(1, size_of(i)));
  const double a = ranges(g).at(x).size() * nk, b = ranges(g).at(y).size();
  const double product_of = integer_ ? a * a : a * a * 10;
  if (std::max(b * ni, 1.0) * product_of > most() * (integer_ ? 1 : 100)) return; // both are outputs
  auto row = [&](bool absolute) {
    Writer w(g, {i}, {k});
    const E e = w.at(x, {0, 1});
    return add(g, w.folded(sum_of_reals(), absolute ? expr::abs(e) : e),
               {{absolute ? 0 : -a, a, false, integer_ && ranges(g).at(x).sharp}});
  };
  const Port u = row(false), v = row(true);
  auto body = [&](Writer& w, int at) {
    const E p = w.at(u, {at}), q = w.at(v, {at});
    return integer_ ? p * q : expr::ratio(p, q + 0.5);
  };
  Writer o(g, {i});
  const Port out = add(g, o.of(body(o, 0)), {{-product_of, product_of, false, integer_}});
  Writer t(g, {l}, {i});
  const E again = c_.below(4) < 3 ? body(t, 1) : t.at(out, {1});
  const double size = product_of * b * ni;
  const Port sum =
      add(g, t.folded(sum_of_reals(), again * t.at(y, {1, 0})), {{-size, size, false, integer_}});
  kept_.push_back(out);
  kept_.push_back(sum);
}

// The state of an absorbing fold: scores and what is summed beside them, each finished by a map.
void Generator::absorbed(Graph& g) {
  const Extent i = extent(), j = extent(), l = extent();
  const Port s = tensor(g, Type::real, {i, j}), v = tensor(g, Type::real, {j, l});
  const double nj = double(std::max<int64_t>(1, size_of(j))), size = ranges(g).at(v).size() * nj;
  const Range score = ranges(g).at(s);
  if (size > most() || score.size() > (integer_ ? 1 << 20 : 16)) return;
  const bool sharp = score.sharp && ranges(g).at(v).sharp;
  Writer w(g, {i, l}, {j});
  E e = w.at(s, {0, 2});
  if (const uint32_t cut = c_.below(4); cut == 1)
    e = w.masked({{axis(0) - axis(2)}}, e);
  else if (cut == 2)
    e = w.masked({{axis(2) - constant(1)}}, e);
  const E x = expr::or_else(w.at(v, {2, 1}), expr::lit(g.pool, 0)); // presence is of all components alike
  Port state;
  const std::vector<int> rows{0}, all{0, 1};
  if (integer_) {
    Comp c = w.folded(largest_and_sum(), {e, x});
    c.outs[0].axes = rows;
    state = add(g, std::move(c), {{score.lo, score.hi, true, sharp}, {-size, size, false, sharp}});
    kept_.push_back({state.node, 1});
    return;
  }
  Comp c = w.folded(online_softmax(2), {e, expr::lit(g.pool, 1), x});
  c.outs[0].axes = c.outs[1].axes = rows;
  state = add(g, std::move(c),
              {{score.lo, score.hi, true, false}, {0, nj, false, false}, {-size, size, false, false}});
  Writer out(g, {i, l});
  const E result = expr::ratio(out.at({state.node, 2}, {0, 1}), out.at({state.node, 1}, {0}));
  kept_.push_back(add(g, out.of(result), {{-size, size, false, false}}));
}

// A contraction of short inner terms with a third tensor: the folds may change places.
void Generator::short_inside(Graph& g) {
  static const std::vector<int> rows{16, 17, 33}, inner{3, 2, 4, 1};
  const Extent i(c_.of(rows)), j(c_.of(rows)), d(c_.of(inner)), l(c_.of(inner));
  const Port q = tensor(g, Type::real, {i, d}), k = tensor(g, Type::real, {j, d}),
             v = tensor(g, Type::real, {j, l});
  const Range qr = ranges(g).at(q), kr = ranges(g).at(k), vr = ranges(g).at(v);
  const double dot = qr.size() * kr.size() * double(d.value()), size = dot * vr.size() * double(j.value());
  if (size > most() * (integer_ ? 1 : 10)) return;
  const bool bent = c_.below(4) < 3, sharp = integer_ && qr.sharp && kr.sharp && vr.sharp;
  Writer w(g, {i, j}, {d});
  const E a = w.at(q, {0, 2}), b = w.at(k, {1, 2});
  const Port s = add(g, w.folded(sum_of_reals(), bent ? expr::relu(a) * expr::relu(b) : a * b),
                     {{-dot, dot, false, sharp}});
  Writer o(g, {i, l}, {j});
  kept_.push_back(
      add(g, o.folded(sum_of_reals(), o.at(s, {0, 2}) * o.at(v, {2, 1})), {{-size, size, false, sharp}}));
}

// A map that only reads, and what reads it.
void Generator::copied(Graph& g) {
  const Extent i = extent(), k = extent();
  const Port x = tensor(g, Type::real, {i, k});
  const Range r = ranges(g).at(x);
  Writer c(g, {i, k});
  const E plain = c.at(x, {0, 1});
  const Port copy = add(g, c.of(c_.below(4) < 3 ? plain : c.masked({{axis(0) - axis(1)}}, plain)), {r});
  Writer m(g, {i}, {k});
  kept_.push_back(add(g, m.folded(max_of_reals(), m.at(copy, {0, 1})), {{r.lo, r.hi, true, r.sharp}}));
  kept_.push_back(copy);
}

// Columns of a softmax: each row's divisor stands inside the fold over rows.
void Generator::columns_of_softmax(Graph& g) {
  const Extent i = extent(), j = extent(), l = extent();
  const Port s = tensor(g, Type::real, {i, j}), u = tensor(g, Type::real, {i, l});
  const Range r = ranges(g).at(s);
  const double nj = double(std::max<int64_t>(1, size_of(j))), ni = double(std::max<int64_t>(1, size_of(i)));
  const double size = ranges(g).at(u).size() * ni;
  if (size > most() || r.size() > 16) return;
  Writer m(g, {i}, {j});
  const Port top = add(g, m.folded(max_of_reals(), m.at(s, {0, 1})), {{r.lo, r.hi, true, false}});
  auto weight = [&](Writer& w, int row, int column) {
    return expr::exp(w.at(s, {row, column}) - w.at(top, {row}));
  };
  Writer t(g, {i}, {j});
  const Port total = add(g, t.folded(sum_of_reals(), weight(t, 0, 1)), {{0, nj, false, false}});
  Writer o(g, {j, l}, {i});
  E p = weight(o, 2, 0);
  switch (c_.below(3)) {
  case 0: p = expr::ratio(p, o.at(total, {2})); break;
  case 1: p = p * expr::recip(o.at(total, {2})); break;
  default: p = expr::exp(o.at(s, {2, 0}) - o.at(top, {2}) - expr::log(o.at(total, {2}))); break;
  }
  kept_.push_back(add(g, o.folded(sum_of_reals(), p * o.at(u, {2, 1})), {{-size, size, false, false}}));
}

// Scores of short contractions that one sum reads row by row and another along its diagonals: a table's
// gradient. Where its own bounds do not say that it reads inside, both rules have to stop.
void Generator::across(Graph& g) {
  static const std::vector<int> rows{8, 5, 16, 9}, inner{2, 1, 3};
  const Extent n(c_.of(rows)), m(c_.of(rows)), d(c_.of(inner)), l(1 + int(c_.below(4)));
  const Port q = tensor(g, Type::real, {n, d}), k = tensor(g, Type::real, {m, d}),
             v = tensor(g, Type::real, {m, l});
  const Range qr = ranges(g).at(q), kr = ranges(g).at(k), vr = ranges(g).at(v);
  const double dot = qr.size() * kr.size() * double(d.value()), row = dot * vr.size() * double(m.value()),
               diagonal = (dot + 1) * double(n.value());
  if (std::max(row, diagonal) > most() * (integer_ ? 1 : 10)) return;
  const bool sharp = integer_ && qr.sharp && kr.sharp && vr.sharp;
  Writer w(g, {n, m}, {d});
  const Port score =
      add(g, w.folded(sum_of_reals(), w.at(q, {0, 2}) * w.at(k, {1, 2})), {{-dot, dot, false, sharp}});
  Writer o(g, {n, l}, {m});
  kept_.push_back(add(g, o.folded(sum_of_reals(), o.at(score, {0, 2}) * o.at(v, {2, 1})),
                      {{-row, row, false, sharp}}));
  Writer t(g, {n + m - Extent(1)}, {n});
  const int64_t stride = 1 + int64_t(c_.below(4)) / 3;
  const Form far = c_.below(2) ? axis(0) - axis(1, stride)
                               : axis(1, stride) + constant(m.value() - 1) - axis(0);
  const Domain inside = {between(far, 0, m)};
  E e = t.through(score, {axis(1), far});
  switch (c_.below(6)) {
  case 0: e = t.within(inside, e, 1); break;
  case 1: e = t.masked(inside, e); break;
  case 2: e = expr::relu(e); [[fallthrough]];
  default: t.c.domain = inside;
  }
  kept_.push_back(add(g, t.folded(sum_of_reals(), e), {{-diagonal, diagonal, false, sharp}}));
}

// Dear values of coordinates alone that many points share, as the angles of a rotation.
void Generator::angles(Graph& g) {
  static const std::vector<int> many{8, 5, 4, 16}, few{3, 2, 5, 4};
  const Extent h(c_.of(many)), i(c_.of(few)), j(c_.of(few));
  const Port x = tensor(g, Type::real, {h, i, j});
  const double size = ranges(g).at(x).size() * 4 * double(j.value());
  if (size > most()) return;
  const bool summed = c_.below(2);
  Writer w(g, summed ? std::vector<Extent>{h, i} : std::vector<Extent>{h, i, j},
           summed ? std::vector<Extent>{j} : std::vector<Extent>{});
  const E a = expr::to_real(w.coordinate(1)), b = expr::to_real(w.coordinate(2));
  E angle = expr::sin(a * expr::exp2(b * -0.5)); // sizes below 4
  switch (c_.below(4)) {
  case 1: angle = expr::ratio(a, b + 1); break;
  case 2: angle = expr::sqrt(a + b); break;
  case 3: angle = expr::exp2(a * b * -0.25) - expr::sin(a - b); break;
  default: break;
  }
  if (c_.chance(3)) w.c.domain = {{axis(1) - constant(1)}};
  const E e = w.at(x, {0, 1, 2}) * angle;
  kept_.push_back(add(g, summed ? w.folded(sum_of_reals(), e) : w.of(e), {{-size, size, false, false}}));
}

// Terms of one key, of keys that are sorted: each place folds its own run, whose ends are found by halving;
// and how many keys are smaller. With offsets, rows of keys, places that two axes or a stride make, bounds
// beside.
void Generator::runs(Graph& g) {
  const Extent t = extent(), l = extent(), places = extent();
  const int64_t limit = size_of(places) + int64_t(c_.below(2));
  if (depth_ > 0 || limit < 1) return; // inputs of a step are what its recurrence hands in
  const bool rows = c_.chance(3);
  const Extent r(rows ? 2 : 1);
  const std::vector<Extent> shape = rows ? std::vector<Extent>{r, t} : std::vector<Extent>{t};
  const NodeId key = g.add({Input{Input::data, shape, Format::i32},
                            "table" + std::to_string(limit) + " sorted" + std::to_string(names_++), {}});
  g.set_sorted(key);
  ranges(g)[{key, 0}] = {0, double(limit - 1)};
  const Port x = tensor(g, Type::real, {t, l});
  const double nt = double(std::max<int64_t>(1, size_of(t)));
  const Range of_x = ranges(g).at(x);
  const double size = of_x.size() * nt;
  if (size > most()) return;
  const uint32_t kind = c_.below(6);
  const int64_t offset = int64_t(c_.below(4)) / 2 - int64_t(c_.below(4)) / 3;
  // Axes: row, place, column, another part of the place; then the term.
  Writer w(g, {r, places, l, Extent(1 + int64_t(c_.below(2)))}, {t});
  const E read = w.at({key, 0}, rows ? std::vector<int>{0, 4} : std::vector<int>{4});
  const int64_t stride = 1 + int64_t(c_.below(4)) / 3;
  if (kind == 0) {
    const E place = w.coordinate(1) * double(stride) + w.coordinate(3);
    const E one = expr::lit_like(read, 1), none = expr::lit_like(read, 0);
    const E smaller = expr::select(read + double(offset) < place, one, none);
    kept_.push_back(add(g, w.folded(sum_of_index(), smaller), {{0, nt}}));
    return;
  }
  const Form at = uniform(0) + constant(offset), place = axis(1, stride) + axis(3);
  Conj same;
  insert(same, at - place), insert(same, place - at);
  if (kind == 1) insert(same, axis(4) - constant(1));
  if (kind == 2) insert(same, axis(2) - axis(4) + constant(2));
  E e = w.at(x, {4, 2});
  if (c_.below(3))
    e = w.masked({same}, e);
  else
    w.c.domain = {same};
  if (kind == 3) {
    kept_.push_back(add(g, w.folded(max_of_reals(), e), {{of_x.lo, of_x.hi, true, of_x.sharp}}));
    return;
  }
  kept_.push_back(add(g, w.folded(sum_of_reals(), e), {{-size, size, false, integer_ && of_x.sharp}}));
}

void Generator::rare(Graph& g) {
  const size_t kept = kept_.size();
  switch (c_.below(integer_ ? 8 : 11)) {
  case 0: guarded_twice(g); break;
  case 1: reshaped(g); break;
  case 2: computed_again(g); break;
  case 3: absorbed(g); break;
  case 4: short_inside(g); break;
  case 5: copied(g); break;
  case 6: across(g); break;
  case 7: runs(g); break;
  case 8: columns_of_softmax(g); break;
  default: angles(g); break;
  }
  if (depth_ > 0) kept_.resize(kept); // a step has its own outputs
}

} // namespace tang::fuzz
