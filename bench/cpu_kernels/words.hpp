// Words for writing kernel IR by hand.
#pragma once
#include <limits>

#include "tang/expr/build.hpp"
#include "tang/kernel/kernel.hpp"

namespace cpu_kernels {

using namespace tang;
using namespace tang::kernel;
using expr::E;
using expr::Op;

inline constexpr double inf = std::numeric_limits<double>::infinity();

inline Affine v(Var x, int64_t k = 1) { return variable(x, k); }

inline Affine operator+(Affine a, int64_t c) { return a + constant(c); }

inline Affine operator-(int64_t c, const Affine& a) { return constant(c) - a; }

inline Coordinate at(Affine a) { return {std::move(a), {}}; }

inline Coordinate below(int64_t n, const Affine& a) { return at(constant(n - 1) - a); } // a < n

inline Ref ref(int memory, const std::vector<Affine>& index) {
  Ref r{memory, {}, false};
  for (auto& a : index) r.index.push_back(at(a));
  return r;
}

inline int global(Kernel& k, const std::string& name, std::vector<int64_t> shape, Access access,
                  Format f = Format::f32) {
  Memory m;
  m.name = name, m.shape = std::move(shape), m.access = access, m.format = f;
  return k.add(m);
}

inline int tile(Kernel& k, const std::string& name, std::vector<int64_t> shape, Home home = Home::shared) {
  Memory m;
  m.name = name, m.shape = std::move(shape), m.home = home, m.team = Team::workgroup,
  m.access = Access::read_write;
  return k.add(m);
}

inline E arg(Kernel& k, int n, Type t = Type::real) { return {k.pool.get(), k.pool->leaf(Op::arg, t, n)}; }

inline E lit(Kernel& k, double r) { return expr::lit(*k.pool, r); }

// dst = value of refs, for every point; `vector` indexes the axes.
struct Copy {
  std::vector<TileAxis> axes;
  Ref dst;
  std::vector<Ref> refs;
  E value;
  int vector = -1;
  Bounds bounds = {};
  std::vector<Bounds> partial = {};
  std::optional<Value> fill = {};
};

inline Stmt apply(Copy c) {
  Apply a;
  a.axes = std::move(c.axes), a.dst = {std::move(c.dst)}, a.bounds = std::move(c.bounds),
  a.partial = std::move(c.partial);
  a.body.refs = std::move(c.refs), a.body.values = {c.value.id}, a.vector = c.vector;
  if (c.fill) a.fill = {c.fill};
  return {a};
}

// dst(kept) = sum or max of value over folded.
struct Total {
  std::vector<TileAxis> kept, folded;
  Ref dst;
  std::vector<Ref> refs;
  E value;
  bool max = false, accumulate = false;
  int vector = -1, ways = 1;
  Bounds bounds = {};
  std::vector<Bounds> partial = {};
};

inline Stmt fold(Kernel& k, Total t) {
  Fold f;
  f.kept = std::move(t.kept), f.folded = std::move(t.folded), f.dst = {std::move(t.dst)};
  f.body.refs = std::move(t.refs), f.body.values = {t.value.id}, f.bounds = std::move(t.bounds),
  f.partial = std::move(t.partial);
  f.identity = {expr::real(t.max ? -inf : 0)}, f.accumulate = t.accumulate, f.vector = t.vector,
  f.ways = t.ways;
  const E a{k.pool.get(), k.pool->leaf(Op::var, Type::real, 0)},
      b{k.pool.get(), k.pool->leaf(Op::var, Type::real, 1)};
  f.combine = {t.max ? expr::max(a, b).id : (a + b).id};
  return {f};
}

inline int64_t blocks(int64_t n, int64_t step) { return (n + step - 1) / step; }

} // namespace cpu_kernels
