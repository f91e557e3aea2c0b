// Kernels built by hand, each with inputs and the values that plain loops give: for the simulator, printers
// and legality.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tang/expr/build.hpp"
#include "tang/kernel/kernel.hpp"
#include "tang/kernel/simulate.hpp"

namespace samples {

using namespace tang;
using namespace tang::kernel;
using expr::E;
using expr::Op;

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline const double nan = std::numeric_limits<double>::quiet_NaN();

// A kernel, its buffers before the run (outputs are NaN or -1) and the wanted contents of the outputs
// (inputs: empty).
struct Sample {
  Kernel kernel;
  std::vector<Buffer> buffers, want;
  double tolerance = 1e-12;
};

// ---- pieces ----
inline Coordinate at(Affine a) { return {std::move(a), {}}; }
inline Coordinate gathered(int ref, int64_t k = 1, Affine a = {}) { return {std::move(a), {{ref, k}}}; }
inline Ref ref(int memory, const std::vector<Affine>& index, bool checked = false) {
  Ref r{memory, {}, checked};
  for (auto& a : index) r.index.push_back(at(a));
  return r;
}
inline Affine v(Var x, int64_t k = 1) { return variable(x, k); }
inline Affine operator+(Affine a, int64_t c) { return a + constant(c); }
inline Affine below(int64_t n, const Affine& a) { return constant(n - 1) - a; } // >= 0 where a < n

inline int global(Kernel& k, const std::string& name, std::vector<int64_t> shape, Access access,
                  Format f = Format::f32) {
  Memory m;
  m.name = name;
  m.shape = std::move(shape);
  m.access = access;
  m.format = f;
  return k.add(m);
}

inline int tile(Kernel& k, const std::string& name, std::vector<int64_t> shape, Home home = Home::shared,
                Format f = Format::f32) {
  Memory m;
  m.name = name;
  m.shape = std::move(shape);
  m.home = home;
  m.team = Team::workgroup;
  m.format = f;
  return k.add(m);
}
inline E arg(Kernel& k, int n, Type t = Type::real) { return {k.pool.get(), k.pool->leaf(Op::arg, t, n)}; }
inline E coord(Kernel& k, Var x) { return {k.pool.get(), k.pool->leaf(Op::coord, Type::index, x)}; }
inline E lit(Kernel& k, double r) { return expr::lit(*k.pool, r); }
inline E index(Kernel& k, int64_t i) { return {k.pool.get(), k.pool->literal(expr::whole(i))}; }
inline Stmt apply(std::vector<TileAxis> axes, Ref dst, std::vector<Ref> refs, E value, Bounds bounds = {},
                  std::vector<Bounds> partial = {}, std::optional<Value> fill = {}) {
  Apply a;
  a.axes = std::move(axes);
  a.bounds = std::move(bounds);
  a.partial = std::move(partial);
  a.dst = {std::move(dst)};
  a.body.refs = std::move(refs);
  a.body.values = {value.id};
  if (fill) a.fill = {fill};
  return {a};
}

// ---- monoids ----
struct Monoid {
  std::string name;
  std::vector<Type> types;
  std::vector<Value> identity;
  std::function<std::vector<E>(const std::vector<E>&, const std::vector<E>&)> combine;
};
inline E exp_of(E a) { return expr::exp(a); }
inline std::vector<Monoid> monoids() {
  using expr::max;
  using expr::min;
  using expr::select;
  const Value low = expr::real(-inf), zero = expr::real(0);
  auto keep = [](const std::vector<E>& a, const std::vector<E>& b) {
    return b[0] < a[0] || (a[0] == b[0] && a[1] <= b[1]);
  };
  return {
      {"sum", {Type::real}, {zero}, [](auto& a, auto& b) { return std::vector<E>{a[0] + b[0]}; }},
      {"max", {Type::real}, {low}, [](auto& a, auto& b) { return std::vector<E>{max(a[0], b[0])}; }},
      {"min",
       {Type::real},
       {expr::real(inf)},
       [](auto& a, auto& b) { return std::vector<E>{min(a[0], b[0])}; }},
      {"argmax",
       {Type::real, Type::index},
       {low, expr::whole(INT64_MAX)},
       [keep](auto& a, auto& b) {
         const E first = keep(a, b);
         return std::vector<E>{select(first, a[0], b[0]), select(first, a[1], b[1])};
       }},
      {"online softmax",
       {Type::real, Type::real},
       {low, zero},
       [](auto& a, auto& b) {
         const E m = max(a[0], b[0]);
         auto act = [&](E own) { return select(own == m, expr::lit_like(own, 1), exp_of(own - m)); };
         const E left = act(a[0]) * a[1], right = act(b[0]) * b[1];
         return std::vector<E>{m, left + right};
       }},
      {"welford",
       {Type::real, Type::real, Type::real},
       {zero, zero, zero},
       [](auto& a, auto& b) {
         const E n = a[0] + b[0], d = b[1] - a[1], share = expr::ratio(b[0], n);
         return std::vector<E>{n, a[1] + d * share, a[2] + b[2] + d * d * a[0] * share};
       }},
  };
}
// The lift of a real x at position j.
inline std::vector<E> lift(const std::string& monoid, Kernel& k, E x, Var j) {
  if (monoid == "argmax") return {x, coord(k, j)};
  if (monoid == "online softmax") return {x, lit(k, 1)};
  if (monoid == "welford") return {lit(k, 1), x, lit(k, 0)};
  return {x};
}
inline std::vector<double> plain_fold(const std::string& monoid, const std::vector<double>& x) {
  double sum = 0, high = -inf, low = inf, at = double(INT64_MAX);
  for (size_t j = 0; j < x.size(); ++j) {
    sum += x[j];
    if (x[j] > high) at = double(j);
    high = std::max(high, x[j]);
    low = std::min(low, x[j]);
  }
  const double n = double(x.size()), mean = x.empty() ? 0 : sum / n;
  double l = 0, squares = 0;
  for (double e : x) {
    l += std::exp(e - high);
    squares += (e - mean) * (e - mean);
  }
  if (monoid == "sum") return {sum};
  if (monoid == "max") return {high};
  if (monoid == "min") return {low};
  if (monoid == "argmax") return {high, at};
  if (monoid == "online softmax") return {high, l};
  return {n, mean, squares};
}
inline Buffer reals(size_t n, double seed) {
  Buffer b;
  for (size_t i = 0; i < n; ++i) b.r.push_back(double(float(std::sin(seed + 0.7 * double(i)))));
  return b;
}
inline Buffer empty_reals(size_t n) { return {std::vector<double>(n, nan), {}}; }
inline Buffer wholes(std::vector<int64_t> i) { return {{}, std::move(i)}; }

// ---- y[i] = x[i] * sigmoid(x[i]) + i, in blocks with a tail ----
inline Sample map(int64_t n = 1000, int64_t step = 64) {
  Sample s;
  Kernel& k = s.kernel;
  const int x = global(k, "x", {n}, Access::read), y = global(k, "y", {n}, Access::write, Format::f64);
  const Var i0 = k.fresh("i0"), i = k.fresh("i");
  k.grid = {{i0, n, step}};
  const E e = expr::silu(arg(k, 0)) + expr::to_real(coord(k, i0) + coord(k, i));
  k.body = {
      apply({{i, step}}, ref(y, {v(i0) + v(i)}), {ref(x, {v(i0) + v(i)})}, e, {at(below(n, v(i0) + v(i)))})};
  s.buffers = {reals(size_t(n), 1), empty_reals(size_t(n))};
  s.want.resize(2);
  for (int64_t p = 0; p < n; ++p) {
    const double a = s.buffers[0].r[size_t(p)];
    s.want[1].r.push_back(a / (1 + std::exp(-a)) + double(p));
  }
  return s;
}

// ---- one fold a row under a monoid ----
struct RowFold {
  int64_t rows = 21, columns = 37, block = 8;
  int ways = 1;
  int vector = -1;  // of the fold: 1 is the folded axis
};
inline Sample row_fold(const Monoid& monoid, RowFold f = {}) {
  Sample s;
  Kernel& k = s.kernel;
  const int x = global(k, "x", {f.rows, f.columns}, Access::read);
  const Var r0 = k.fresh("r0"), r = k.fresh("r"), j = k.fresh("j");
  k.grid = {{r0, f.rows, f.block}};
  Fold fold;
  fold.kept = {{r, f.block}};
  fold.folded = {{j, f.columns}};
  fold.bounds = {at(below(f.rows, v(r0) + v(r)))};
  fold.body.refs = {ref(x, {v(r0) + v(r), v(j)})};
  fold.identity = monoid.identity;
  fold.ways = f.ways;
  fold.vector = f.vector;
  std::vector<E> left, right;
  s.buffers = {reals(size_t(f.rows * f.columns), 2)};
  s.want.resize(1);
  for (size_t c = 0; c < monoid.types.size(); ++c) {
    const bool real = monoid.types[c] == Type::real;
    const int y =
        global(k, "y" + std::to_string(c), {f.rows}, Access::write, real ? Format::f64 : Format::i64);
    fold.dst.push_back(ref(y, {v(r0) + v(r)}));
    left.push_back({k.pool.get(), k.pool->leaf(Op::var, monoid.types[c], int64_t(2 * c))});
    right.push_back({k.pool.get(), k.pool->leaf(Op::var, monoid.types[c], int64_t(2 * c + 1))});
    s.buffers.push_back(real ? empty_reals(size_t(f.rows))
                             : wholes(std::vector<int64_t>(size_t(f.rows), -1)));
  }
  for (E e : lift(monoid.name, k, arg(k, 0), j)) fold.body.values.push_back(e.id);
  for (E e : monoid.combine(left, right)) fold.combine.push_back(e.id);
  k.body = {{fold}};
  s.want.resize(s.buffers.size());
  for (int64_t row = 0; row < f.rows; ++row) {
    const auto from = s.buffers[0].r.begin() + row * f.columns;
    const auto out = plain_fold(monoid.name, std::vector<double>(from, from + f.columns));
    for (size_t c = 0; c < out.size(); ++c)
      if (monoid.types[c] == Type::real) s.want[1 + c].r.push_back(out[c]);
      else s.want[1 + c].i.push_back(int64_t(out[c]));
  }
  return s;
}

// ---- C = A B through packed tiles; every size has a tail ----
struct Matmul {
  int64_t m = 37, n = 45, k = 29, bm = 16, bn = 16, bk = 8, panel = 4;
};
inline Sample matmul(Matmul z = {}) {
  Sample s;
  Kernel& k = s.kernel;
  const int a = global(k, "a", {z.m, z.k}, Access::read), b = global(k, "b", {z.k, z.n}, Access::read);
  const int c = global(k, "c", {z.m, z.n}, Access::write);
  const int at_ = tile(k, "at", {z.bm, z.bk}), bt = tile(k, "bt", {z.bn / z.panel, z.bk, z.panel});
  const int acc = tile(k, "acc", {z.bm, z.bn}, Home::register_);
  const Var i0 = k.fresh("i0"), j0 = k.fresh("j0"), k0 = k.fresh("k0");
  auto axis = [&](const char* name) { return k.fresh(name); };
  k.grid = {{i0, z.m, z.bm}, {j0, z.n, z.bn}};
  {
    const Var i = axis("i"), j = axis("j");
    k.body.push_back(apply({{i, z.bm}, {j, z.bn}}, ref(acc, {v(i), v(j)}), {}, lit(k, 0)));
  }
  Pipeline p;
  p.var = k0;
  p.step = z.bk;
  p.segments = {{constant(0), constant(z.k / z.bk * z.bk), false},
                {constant(z.k / z.bk * z.bk), constant(z.k), true}};
  {
    const Var i = axis("i"), t = axis("t");
    p.operands.push_back(
        apply({{i, z.bm}, {t, z.bk}}, ref(at_, {v(i), v(t)}), {ref(a, {v(i0) + v(i), v(k0) + v(t)})},
              arg(k, 0), {at(below(z.m, v(i0) + v(i)))}, {{at(below(z.k, v(k0) + v(t)))}}, expr::real(0)));
  }
  {
    const Var q = axis("q"), t = axis("t"), j = axis("j");
    const Affine column = v(j0) + v(q, z.panel) + v(j);
    p.operands.push_back(apply({{q, z.bn / z.panel}, {t, z.bk}, {j, z.panel}}, ref(bt, {v(q), v(t), v(j)}),
                               {ref(b, {v(k0) + v(t), column})}, arg(k, 0), {at(below(z.n, column))},
                               {{at(below(z.k, v(k0) + v(t)))}}, expr::real(0)));
  }
  p.operands.push_back({Barrier{}});
  {
    Contract x;
    const Var i = axis("i"), q = axis("q"), j = axis("j"), t = axis("t");
    x.m = {{i, z.bm}};
    x.n = {{q, z.bn / z.panel}, {j, z.panel}};
    x.k = {{t, z.bk}};
    x.dst = ref(acc, {v(i), v(q, z.panel) + v(j)});
    x.a = ref(at_, {v(i), v(t)});
    x.b = ref(bt, {v(q), v(t), v(j)});
    x.m_end = constant(z.m) - v(i0);
    x.n_end = constant(z.n) - v(j0);
    x.k_end = constant(z.k) - v(k0);
    x.rows = 4;
    p.body.push_back({x});
  }
  p.body.push_back({Barrier{}});
  k.body.push_back({p});
  {
    const Var i = axis("i"), j = axis("j");
    k.body.push_back(apply({{i, z.bm}, {j, z.bn}}, ref(c, {v(i0) + v(i), v(j0) + v(j)}),
                           {ref(acc, {v(i), v(j)})}, arg(k, 0),
                           {at(below(z.m, v(i0) + v(i))), at(below(z.n, v(j0) + v(j)))}));
  }
  s.buffers = {reals(size_t(z.m * z.k), 1), reals(size_t(z.k * z.n), 2), empty_reals(size_t(z.m * z.n))};
  s.want.resize(3);
  s.tolerance = 3e-6;  // the tiles are f32
  for (int64_t i = 0; i < z.m; ++i)
    for (int64_t j = 0; j < z.n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < z.k; ++t)
        sum += s.buffers[0].r[size_t(i * z.k + t)] * s.buffers[1].r[size_t(t * z.n + j)];
      s.want[2].r.push_back(sum);
    }
  return s;
}

// ---- causal attention of one head: online softmax over blocks of keys, full blocks first ----
struct Flash {
  int64_t n = 45, m = 39, d = 8, bi = 16, bj = 8;
};
inline Sample flash(Flash z = {}) {
  Sample s;
  Kernel& k = s.kernel;
  const double scale = 1 / std::sqrt(double(z.d));
  const int q = global(k, "q", {z.n, z.d}, Access::read), key = global(k, "k", {z.m, z.d}, Access::read);
  const int val = global(k, "v", {z.m, z.d}, Access::read), out = global(k, "out", {z.n, z.d}, Access::write);
  const int lse = global(k, "lse", {z.n}, Access::write, Format::f64);
  const Format wide = Format::f64;
  const int qt = tile(k, "qt", {z.bi, z.d}), kt = tile(k, "kt", {z.d, z.bj}), vt = tile(k, "vt", {z.bj, z.d});
  const int score = tile(k, "score", {z.bi, z.bj}, Home::register_, wide),
            w = tile(k, "w", {z.bi, z.bj}, Home::register_, wide);
  const int top = tile(k, "top", {z.bi}, Home::register_, wide),
            next = tile(k, "next", {z.bi}, Home::register_, wide);
  const int act = tile(k, "act", {z.bi}, Home::register_, wide),
            sum = tile(k, "sum", {z.bi}, Home::register_, wide);
  const int acc = tile(k, "acc", {z.bi, z.d}, Home::register_, wide);
  const Var i0 = k.fresh("i0"), reach = k.fresh("reach"), blocks = k.fresh("blocks"), last = k.fresh("last");
  const Var j0 = k.fresh("j0"), i = k.fresh("i"), j = k.fresh("j"), c = k.fresh("c");
  const TileAxis ai{i, z.bi}, aj{j, z.bj}, ac{c, z.d};
  const Coordinate row_lives = at(below(z.n, v(i0) + v(i)));
  const std::vector<Bounds> visible = {{at(v(i0) + v(i) - v(j0) - v(j)), at(below(z.m, v(j0) + v(j)))}};
  const std::vector<Bounds> key_lives = {{at(below(z.m, v(j0) + v(j)))}};
  const E a0 = arg(k, 0), a1 = arg(k, 1);
  auto each = [&](int t) { return ref(t, {v(i)}); };
  auto pairs = [&](int t) { return ref(t, {v(i), v(j)}); };
  auto rows = [&](int t) { return ref(t, {v(i), v(c)}); };

  k.grid = {{i0, z.n, z.bi}};
  k.body.push_back(
      apply({ai, ac}, rows(qt), {ref(q, {v(i0) + v(i), v(c)})}, a0 * scale, {row_lives}, {}, expr::real(0)));
  k.body.push_back(apply({ai}, each(top), {}, lit(k, -inf)));
  k.body.push_back(apply({ai}, each(sum), {}, lit(k, 0)));
  k.body.push_back(apply({ai, ac}, rows(acc), {}, lit(k, 0)));
  k.body.push_back({Let{reach, Let::min, {v(i0) + 1, constant(z.m)}, 1, {}}});
  k.body.push_back({Let{blocks, Let::floor_div, {v(reach)}, z.bj, {}}});
  k.body.push_back({Let{last, Let::min, {v(i0) + z.bi, constant(z.m)}, 1, {}}});
  Pipeline p;
  p.var = j0;
  p.step = z.bj;
  p.stages = 2;
  p.segments = {{constant(0), v(blocks, z.bj), false}, {v(blocks, z.bj), v(last), true}};
  p.operands.push_back(apply({aj, ac}, ref(kt, {v(c), v(j)}), {ref(key, {v(j0) + v(j), v(c)})}, a0, {},
                             key_lives, expr::real(0)));
  p.operands.push_back(apply({aj, ac}, ref(vt, {v(j), v(c)}), {ref(val, {v(j0) + v(j), v(c)})}, a0, {},
                             key_lives, expr::real(0)));
  Contract dot;
  dot.m = {ai};
  dot.n = {aj};
  dot.k = {ac};
  dot.dst = pairs(score);
  dot.a = rows(qt);
  dot.b = ref(kt, {v(c), v(j)});
  dot.accumulate = false;
  p.body.push_back({dot});
  p.body.push_back(apply({ai}, each(next), {each(top)}, a0));
  auto fold = [&](int dst, int from, Value identity, bool tested, bool is_max) {
    Fold f;
    f.kept = {ai};
    f.folded = {aj};
    if (tested) f.partial = visible;
    f.dst = {each(dst)};
    f.body.refs = {pairs(from)};
    f.body.values = {a0.id};
    f.identity = {identity};
    const E l{k.pool.get(), k.pool->leaf(Op::var, Type::real, 0)},
        r{k.pool.get(), k.pool->leaf(Op::var, Type::real, 1)};
    f.combine = {is_max ? expr::max(l, r).id : (l + r).id};
    f.accumulate = true;
    return Stmt{f};
  };
  p.body.push_back(fold(next, score, expr::real(-inf), true, true));
  p.body.push_back(
      apply({ai, aj}, pairs(w), {pairs(score), each(next)}, exp_of(a0 - a1), {}, visible, expr::real(0)));
  p.body.push_back(
      apply({ai}, each(act), {each(top), each(next)}, expr::select(a0 == a1, lit(k, 1), exp_of(a0 - a1))));
  p.body.push_back(apply({ai}, each(sum), {each(sum), each(act)}, a0 * a1));
  p.body.push_back(apply({ai, ac}, rows(acc), {rows(acc), each(act)}, a0 * a1));
  p.body.push_back(apply({ai}, each(top), {each(next)}, a0));
  p.body.push_back(fold(sum, w, expr::real(0), false, false));
  Contract mix;
  mix.m = {ai};
  mix.n = {ac};
  mix.k = {aj};
  mix.dst = rows(acc);
  mix.a = pairs(w);
  mix.b = ref(vt, {v(j), v(c)});
  p.body.push_back({mix});
  k.body.push_back({p});
  k.body.push_back(apply({ai, ac}, ref(out, {v(i0) + v(i), v(c)}), {rows(acc), each(sum)},
                         expr::ratio(a0, a1), {row_lives}));
  k.body.push_back(
      apply({ai}, ref(lse, {v(i0) + v(i)}), {each(top), each(sum)}, a0 + expr::log(a1), {row_lives}));

  s.buffers = {reals(size_t(z.n * z.d), 1), reals(size_t(z.m * z.d), 2), reals(size_t(z.m * z.d), 3),
               empty_reals(size_t(z.n * z.d)), empty_reals(size_t(z.n))};
  s.want.resize(5);
  s.tolerance = 1e-6;  // q is scaled into an f32 tile
  for (int64_t row = 0; row < z.n; ++row) {
    std::vector<double> e;
    double total = 0;
    for (int64_t t = 0; t < z.m && t <= row; ++t) {
      double x = 0;
      for (int64_t f = 0; f < z.d; ++f)
        x += s.buffers[0].r[size_t(row * z.d + f)] * s.buffers[1].r[size_t(t * z.d + f)];
      e.push_back(std::exp(x * scale));
      total += e.back();
    }
    for (int64_t f = 0; f < z.d; ++f) {
      double o = 0;
      for (size_t t = 0; t < e.size(); ++t) o += e[t] / total * s.buffers[2].r[t * size_t(z.d) + size_t(f)];
      s.want[3].r.push_back(o);
    }
    s.want[4].r.push_back(std::log(total));
  }
  return s;
}

// ---- out[t, c] = table[ids[t], c]; an id outside the table reads 0 ----
inline Sample gather(int64_t tokens = 19, int64_t rows = 7, int64_t columns = 5) {
  Sample s;
  Kernel& k = s.kernel;
  const int ids = global(k, "ids", {tokens}, Access::read, Format::i32),
            table = global(k, "table", {rows, columns}, Access::read);
  const int out = global(k, "out", {tokens, columns}, Access::write);
  const Var t = k.fresh("t"), c = k.fresh("c");
  k.grid = {{t, tokens, 1}};
  Ref row{table, {gathered(0), at(v(c))}, true};
  k.body = {apply({{c, columns}}, ref(out, {v(t), v(c)}), {ref(ids, {v(t)}), row}, arg(k, 1))};
  std::vector<int64_t> id;
  for (int64_t p = 0; p < tokens; ++p) id.push_back(p == 4 ? -1 : p == 5 ? rows : p * 3 % rows);
  s.buffers = {wholes(id), reals(size_t(rows * columns), 4), empty_reals(size_t(tokens * columns))};
  s.want.resize(3);
  for (int64_t p = 0; p < tokens; ++p)
    for (int64_t x = 0; x < columns; ++x) {
      const int64_t r = id[size_t(p)];
      s.want[2].r.push_back(r < 0 || r >= rows ? 0 : s.buffers[1].r[size_t(r * columns + x)]);
    }
  return s;
}
// ---- out[perm[i]] = x[i]: a scatter through a permutation ----
inline Sample scatter(int64_t n = 32) {
  Sample s;
  Kernel& k = s.kernel;
  const int perm = global(k, "perm", {n}, Access::read, Format::i32), x = global(k, "x", {n}, Access::read);
  const int out = global(k, "out", {n}, Access::write);
  const Var i0 = k.fresh("i0"), i = k.fresh("i");
  k.grid = {{i0, n, 8}};
  Ref dst{out, {gathered(0)}, false};
  const Affine here = v(i0) + v(i);
  k.body = {apply({{i, 8}}, dst, {ref(perm, {here}), ref(x, {here})}, arg(k, 1))};
  Apply& a = std::get<Apply>(k.body[0].node);
  a.bounds = {at(below(n, here)), gathered(0), Coordinate{constant(n - 1), {{0, -1}}}};
  std::vector<int64_t> to;
  for (int64_t p = 0; p < n; ++p) to.push_back(p * 5 % n);
  s.buffers = {wholes(to), reals(size_t(n), 5), empty_reals(size_t(n))};
  s.want.resize(3);
  s.want[2].r.resize(size_t(n));
  for (int64_t p = 0; p < n; ++p) s.want[2].r[size_t(to[size_t(p)])] = s.buffers[1].r[size_t(p)];
  return s;
}

// ---- y[i] = sum of x[i, j] over j < len[i], and its sign where anything was summed (else untouched: `when`)
// ----
inline Sample ragged(int64_t rows = 11, int64_t columns = 16) {
  Sample s;
  Kernel& k = s.kernel;
  const int len = global(k, "len", {rows}, Access::read, Format::i32),
            x = global(k, "x", {rows, columns}, Access::read);
  const int y = global(k, "y", {rows}, Access::write, Format::f64),
            sign = global(k, "sign", {rows}, Access::write);
  const int total = tile(k, "total", {4}, Home::register_, Format::f64);
  const Var i0 = k.fresh("i0"), i = k.fresh("i"), j = k.fresh("j");
  k.grid = {{i0, rows, 4}};
  const Coordinate lives = at(below(rows, v(i0) + v(i)));
  Fold f;
  f.kept = {{i, 4}};
  f.folded = {{j, columns}};
  f.bounds = {lives};
  f.dst = {ref(total, {v(i)})};
  f.body.refs = {ref(len, {v(i0) + v(i)}), ref(x, {v(i0) + v(i), v(j)})};
  f.limits = {Coordinate{v(j, -1) + (-1), {{0, 1}}}};
  f.body.values = {arg(k, 1).id};
  f.identity = {expr::real(0)};
  const E l{k.pool.get(), k.pool->leaf(Op::var, Type::real, 0)},
      r{k.pool.get(), k.pool->leaf(Op::var, Type::real, 1)};
  f.combine = {(l + r).id};
  k.body = {{f}, apply({{i, 4}}, ref(y, {v(i0) + v(i)}), {ref(total, {v(i)})}, arg(k, 0), {lives})};
  Stmt last = apply({{i, 4}}, ref(sign, {v(i0) + v(i)}), {ref(total, {v(i)}), ref(len, {v(i0) + v(i)})},
                    expr::select(arg(k, 0) < lit(k, 0), lit(k, -1), lit(k, 1)), {lives});
  std::get<Apply>(last.node).body.when = (index(k, 0) < arg(k, 1, Type::index)).id;
  k.body.push_back(last);
  std::vector<int64_t> lens;
  for (int64_t p = 0; p < rows; ++p) lens.push_back(p * 7 % (columns + 1));
  s.buffers = {wholes(lens), reals(size_t(rows * columns), 6), empty_reals(size_t(rows)),
               empty_reals(size_t(rows))};
  s.want.resize(4);
  for (int64_t p = 0; p < rows; ++p) {
    double t = 0;
    for (int64_t e = 0; e < lens[size_t(p)]; ++e) t += s.buffers[1].r[size_t(p * columns + e)];
    s.want[2].r.push_back(t);
    s.want[3].r.push_back(lens[size_t(p)] ? (t < 0 ? -1 : 1) : nan);
  }
  return s;
}

// ---- first[x]: how many of the sorted keys are smaller than x, by halving ----
inline Sample first_of_runs(int64_t keys = 29, int64_t places = 11) {
  Sample s;
  Kernel& k = s.kernel;
  const int key = global(k, "key", {keys}, Access::read, Format::i32),
            first = global(k, "first", {places}, Access::write, Format::i32);
  const Var i0 = k.fresh("i0"), i = k.fresh("i"), t = k.fresh("t");
  k.grid = {{i0, places, 4}};
  const Affine place = v(i0) + v(i);
  Fold f;
  f.kept = {{i, 4}};
  f.folded = {{t, keys}};
  f.bounds = {at(below(places, place))};
  f.dst = {ref(first, {place})};
  f.body.refs = {ref(key, {v(t)})};
  f.body.values = {expr::select(arg(k, 0, Type::index) < coord(k, i0) + coord(k, i), index(k, 1), index(k, 0)).id};
  f.identity = {expr::whole(0)};
  f.search = true;
  const E l{k.pool.get(), k.pool->leaf(Op::var, Type::index, 0)}, r{k.pool.get(), k.pool->leaf(Op::var, Type::index, 1)};
  f.combine = {(l + r).id};
  k.body = {{f}};
  std::vector<int64_t> sorted;
  for (int64_t p = 0; p < keys; ++p) sorted.push_back(p * p / 60 - 2); // some before, some beyond, some places missing
  s.buffers = {wholes(sorted), wholes(std::vector<int64_t>(size_t(places), -1))};
  s.want.resize(2);
  for (int64_t x = 0; x < places; ++x)
    s.want[1].i.push_back(std::count_if(sorted.begin(), sorted.end(), [&](int64_t y) { return y < x; }));
  return s;
}

inline std::vector<std::pair<std::string, Sample>> all() {
  std::vector<std::pair<std::string, Sample>> out = {{"map", map()},         {"matmul", matmul()},
                                                     {"flash", flash()},     {"gather", gather()},
                                                     {"scatter", scatter()}, {"ragged", ragged()},
                                                     {"first of runs", first_of_runs()}};
  for (auto& m : monoids()) out.emplace_back("row fold, " + m.name, row_fold(m));
  return out;
}

// What differs between the buffers and the wanted values; empty when nothing does. NaN wants NaN.
inline std::string differences(const Sample& s, const std::vector<Buffer>& got) {
  std::string out;
  for (size_t b = 0; b < s.want.size() && out.size() < 400; ++b) {
    for (size_t e = 0; e < s.want[b].r.size() && out.size() < 400; ++e) {
      const double w = s.want[b].r[e], g = got[b].r[e];
      if (std::isnan(w) ? !std::isnan(g) : !(w == g || std::fabs(w - g) <= s.tolerance * (1 + std::fabs(w))))
        out += "buffer " + std::to_string(b) + "[" + std::to_string(e) + "]: " + std::to_string(g) +
               ", not " + std::to_string(w) + "\n";
    }
    for (size_t e = 0; e < s.want[b].i.size() && out.size() < 400; ++e)
      if (got[b].i[e] != s.want[b].i[e])
        out += "buffer " + std::to_string(b) + "[" + std::to_string(e) + "]: " + std::to_string(got[b].i[e]) +
               ", not " + std::to_string(s.want[b].i[e]) + "\n";
  }
  return out;
}

}  // namespace samples
