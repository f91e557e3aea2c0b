// Contractions, copies that transpose, lanes under masks: against plain loops over many sizes and shapes.
#include <gtest/gtest.h>

#include <random>

#include "machine.hpp"

using namespace samples;

namespace {
// c = a b with a packed tile of a and b read in place from the global: every edge rule at once.
struct Shape {
  int64_t m, n, k;
  int rows = 4, vectors = 2;
  bool pack_a = true, pack_b = false, direct = true;
};

Sample product(const Shape& z) {
  Sample s;
  Kernel& k = s.kernel;
  const int64_t mc = 24, nc = 48, kc = 16, mr = z.rows;
  const int a = global(k, "a", {z.m, z.k}, Access::read), b = global(k, "b", {z.k, z.n}, Access::read);
  const int c = global(k, "c", {z.m, z.n}, Access::write);
  const int at_ = tile(k, "at", {(mc + mr - 1) / mr, kc, mr}), bt = tile(k, "bt", {kc, nc}),
            acc = tile(k, "acc", {mc, nc});
  const Var i0 = k.fresh("i0"), j0 = k.fresh("j0"), k0 = k.fresh("k0"), io = k.fresh("io"),
            ii = k.fresh("ii"), j = k.fresh("j"), t = k.fresh("t"), i = k.fresh("i");
  k.grid = {{i0, z.m, mc}, {j0, z.n, nc}};
  const bool once = z.direct && z.k <= kc;
  const Affine row = v(i0) + v(io, mr) + v(ii);
  const int64_t tiles = (mc + mr - 1) / mr;
  if (!once) {
    k.body.push_back(apply({{i, mc}, {j, nc}}, ref(acc, {v(i), v(j)}), {}, lit(k, 0)));
    std::get<Apply>(k.body.back().node).vector = 1;
  }
  Pipeline p;
  p.var = k0, p.step = kc;
  p.segments = {{constant(0), constant(z.k), true}};
  if (z.pack_a) {
    p.operands.push_back(apply({{io, tiles}, {t, kc}, {ii, mr}}, ref(at_, {v(io), v(t), v(ii)}),
                               {ref(a, {row, v(k0) + v(t)})}, arg(k, 0), {at(below(z.m, row))},
                               {{at(below(z.k, v(k0) + v(t)))}}, expr::real(0)));
    std::get<Apply>(p.operands.back().node).vector = 2;
  }
  if (z.pack_b) {
    p.operands.push_back(
        apply({{t, kc}, {j, nc}}, ref(bt, {v(t), v(j)}), {ref(b, {v(k0) + v(t), v(j0) + v(j)})}, arg(k, 0),
              {at(below(z.n, v(j0) + v(j)))}, {{at(below(z.k, v(k0) + v(t)))}}, expr::real(0)));
    std::get<Apply>(p.operands.back().node).vector = 1;
  }
  Contract x;
  x.n = {{j, nc}}, x.k = {{t, kc}};
  const Affine flat = z.pack_a ? v(io, mr) + v(ii) : v(i);
  if (z.pack_a)
    x.m = {{io, tiles}, {ii, mr}};
  else
    x.m = {{i, mc}};
  x.a = z.pack_a ? ref(at_, {v(io), v(t), v(ii)}) : ref(a, {v(i0) + v(i), v(k0) + v(t)});
  x.b = z.pack_b ? ref(bt, {v(t), v(j)}) : ref(b, {v(k0) + v(t), v(j0) + v(j)});
  x.dst = once ? ref(c, {v(i0) + flat, v(j0) + v(j)}) : ref(acc, {flat, v(j)});
  x.accumulate = !once;
  x.m_end = constant(z.m) - v(i0), x.n_end = constant(z.n) - v(j0), x.k_end = constant(z.k) - v(k0);
  x.rows = z.rows, x.vectors = z.vectors;
  p.body.push_back({x});
  k.body.push_back({p});
  if (!once) {
    k.body.push_back(apply({{i, mc}, {j, nc}}, ref(c, {v(i0) + v(i), v(j0) + v(j)}), {ref(acc, {v(i), v(j)})},
                           arg(k, 0), {at(below(z.m, v(i0) + v(i))), at(below(z.n, v(j0) + v(j)))}));
    std::get<Apply>(k.body.back().node).vector = 1;
  }
  s.buffers = {reals(size_t(z.m * z.k), 1), reals(size_t(z.k * z.n), 2), empty_reals(size_t(z.m * z.n))};
  s.want.resize(3);
  for (int64_t r = 0; r < z.m; ++r)
    for (int64_t q = 0; q < z.n; ++q) {
      double sum = 0;
      for (int64_t e = 0; e < z.k; ++e)
        sum += s.buffers[0].r[size_t(r * z.k + e)] * s.buffers[1].r[size_t(e * z.n + q)];
      s.want[2].r.push_back(sum);
    }
  s.tolerance = 1e-5;
  return s;
}

void expect_right(std::vector<Sample> all, const std::string& stem,
                  const std::vector<emit::COptions>& widths) {
  std::vector<Kernel*> kernels;
  for (auto& s : all) kernels.push_back(&s.kernel);
  machine::name_all(kernels, stem);
  std::vector<Buffer> first;
  for (size_t w = 0; w < widths.size(); ++w) {
    auto lib = machine::build(kernels, widths[w], w % 2 ? "clang" : "gcc");
    for (auto& s : all) {
      const machine::Run r = machine::launch(s.kernel, *lib, s.buffers);
      EXPECT_EQ(differences(s, r.buffers), "") << s.kernel.name << ", " << widths[w].lanes << " lanes";
      EXPECT_EQ(r.trespass, "") << s.kernel.name;
    }
  }
}

emit::COptions lanes(int n) {
  emit::COptions o;
  o.lanes = n;
  return o;
}
} // namespace

TEST(contract, sizes_from_1_to_70_packed_and_in_place) {
  std::vector<Sample> all;
  std::minstd_rand r(5);
  auto size = [&] { return int64_t(1 + r() % 70); };
  for (int n = 0; n < 10; ++n) {
    const int64_t a = size(), b = size(), c = size();
    Shape z{a, b, c};
    z.pack_a = n & 1, z.pack_b = n & 2, z.direct = n & 4;
    z.rows = z.pack_a ? (n % 3 == 0 ? 3 : n % 3 == 1 ? 4 : 12) : 5, z.vectors = 1 + n % 3;
    if (n % 5 == 0) z.k = 1 + r() % 16;
    all.push_back(product(z));
  }
  for (const auto& s : all) { // what the kernels mean, by the simulator
    std::vector<Buffer> b = s.buffers;
    EXPECT_EQ(differences(s, (simulate(s.kernel, b), b)), "");
  }
  expect_right(std::move(all), "product", {lanes(16), lanes(8), lanes(4)});
}

TEST(contract, copies_that_transpose) {
  std::vector<Sample> all;
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {3, 40}, {70, 53}, {64, 64}, {17, 128}}) {
    Sample s;
    Kernel& k = s.kernel;
    const int x = global(k, "x", {rows, columns}, Access::read),
              y = global(k, "y", {columns, rows}, Access::write);
    const Var r0 = k.fresh("r0"), r = k.fresh("r"), c = k.fresh("c");
    k.grid = {{r0, rows, 24}};
    Stmt a = apply({{c, columns + 5}, {r, 24}}, ref(y, {v(c), v(r0) + v(r)}), {ref(x, {v(r0) + v(r), v(c)})},
                   arg(k, 0) * 2.0 + 1.0, {at(below(columns, v(c))), at(below(rows, v(r0) + v(r)))});
    std::get<Apply>(a.node).vector = 1;
    k.body = {a};
    s.buffers = {reals(size_t(rows * columns), 3), empty_reals(size_t(rows * columns))};
    s.want.resize(2);
    for (int64_t q = 0; q < columns; ++q)
      for (int64_t p = 0; p < rows; ++p)
        s.want[1].r.push_back(2 * s.buffers[0].r[size_t(p * columns + q)] + 1);
    s.tolerance = 1e-6;
    all.push_back(s);
  }
  expect_right(std::move(all), "transpose", {lanes(16), lanes(8), lanes(4)});
}

// y[i] = fold over j <= i + shift of x[j - i + n], lanes along i: bounds that differ by lane, reads that
// would leave x.
TEST(contract, lanes_that_live_apart) {
  std::vector<Sample> all;
  for (int64_t n : {5, 33, 70})
    for (int vector : {0, 1}) {
      Sample s;
      Kernel& k = s.kernel;
      const int x = global(k, "x", {n}, Access::read), y = global(k, "y", {n}, Access::write);
      const Var i = k.fresh("i"), j = k.fresh("j");
      Fold f;
      f.kept = {{i, n}}, f.folded = {{j, n}};
      f.limits = {at(v(i) - v(j))}; // j <= i: then i - j is inside x
      f.dst = {ref(y, {v(i)})};
      f.body.refs = {ref(x, {v(i) - v(j)})};
      f.body.values = {(arg(k, 0) * expr::to_real(coord(k, j))).id};
      f.identity = {expr::real(0)};
      const E l{k.pool.get(), k.pool->leaf(Op::var, Type::real, 0)},
          r{k.pool.get(), k.pool->leaf(Op::var, Type::real, 1)};
      f.combine = {(l + r).id};
      f.vector = vector, f.ways = 2;
      k.body = {{f}};
      s.buffers = {reals(size_t(n), 2), empty_reals(size_t(n))};
      s.want.resize(2);
      for (int64_t p = 0; p < n; ++p) {
        double sum = 0;
        for (int64_t q = 0; q <= p; ++q) sum += s.buffers[0].r[size_t(p - q)] * double(q);
        s.want[1].r.push_back(sum);
      }
      s.tolerance = 1e-5;
      all.push_back(s);
    }
  expect_right(std::move(all), "apart", {lanes(16), lanes(8), lanes(4)});
}

// A data predicate and a gather under it, with and without a fill; a guard of several pieces; integers and
// booleans.
TEST(contract, predicates_gathers_and_integers_in_lanes) {
  std::vector<Sample> all;
  for (int64_t n : {7, 50})
    for (int vector : {-1, 0})
      for (bool filled : {false, true}) {
        Sample s;
        Kernel& k = s.kernel;
        const int at_ = global(k, "at", {n}, Access::read, Format::i32),
                  x = global(k, "x", {n}, Access::read);
        const int y = global(k, "y", {n}, Access::write), w = global(k, "w", {n}, Access::write, Format::i64);
        const int b = global(k, "b", {n}, Access::write, Format::boolean);
        const Var i = k.fresh("i");
        Apply a;
        a.axes = {{i, n}};
        a.dst = {ref(y, {v(i)}), ref(w, {v(i)}), ref(b, {v(i)})};
        a.body.refs = {ref(at_, {v(i)}), Ref{x, {gathered(0)}, false}};
        a.body.guards = {{{at(v(i) + -3)}, {at(constant(1) - v(i))}}}; // i >= 3 or i <= 1
        const E which = arg(k, 0, Type::index), hole{k.pool.get(), k.pool->leaf(Op::holds, Type::boolean, 0)};
        a.body.when = (index(k, -1) < which).id; // x[-1] is never read
        a.body.values = {expr::select(hole, arg(k, 1), lit(k, 9)).id, (coord(k, i) * 3.0 + which).id,
                         (arg(k, 1) < lit(k, 0)).id};
        if (filled) a.fill = {expr::real(5), expr::whole(-7), expr::truth(true)};
        a.vector = vector;
        k.body = {{a}};
        std::vector<int64_t> from;
        for (int64_t p = 0; p < n; ++p) from.push_back(p % 3 == 1 ? -1 : p * 5 % n);
        s.buffers = {wholes(from), reals(size_t(n), 4), empty_reals(size_t(n)),
                     wholes(std::vector<int64_t>(size_t(n), -1)), wholes(std::vector<int64_t>(size_t(n), 1))};
        s.want.resize(5);
        for (int64_t p = 0; p < n; ++p) {
          const bool lives = from[size_t(p)] >= 0;
          const double e = lives ? s.buffers[1].r[size_t(from[size_t(p)])] : 0;
          s.want[2].r.push_back(lives ? (p >= 3 || p <= 1 ? e : 9) : filled ? 5 : samples::nan);
          s.want[3].i.push_back(lives ? p * 3 + from[size_t(p)] : filled ? -7 : -1);
          s.want[4].i.push_back(lives ? e < 0 : 1);
        }
        all.push_back(s);
      }
  expect_right(std::move(all), "where", {lanes(16), lanes(8), lanes(4)});
}
