// Nests of the worked table, and random ones.
#pragma once
#include <gtest/gtest.h>

#include <random>

#include "tang/bound/count.hpp"
#include "tang/bound/tiles.hpp"
#include "tang/bound/traffic.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/surface.hpp"

namespace tang::test {
using namespace tang::bound;

// "mk kn mn" over extents of m, n, k; the last array is the output.
inline Nest picks(const std::string& loops, const std::vector<int64_t>& extents, const std::vector<std::string>& arrays) {
  Nest n;
  for (char c : loops) n.axes.push_back(std::string(1, c));
  n.extents = extents;
  for (size_t k = 0; k < arrays.size(); ++k) {
    Array a;
    a.name = std::string(1, char('A' + k));
    a.tensor = int(k);
    a.output = k + 1 == arrays.size();
    for (char c : arrays[k]) a.rows.push_back(pick(n, int(loops.find(c))));
    n.arrays.push_back(a);
  }
  return n;
}
inline ir::Graph matmul(int64_t m, int64_t n, int64_t k, ir::Format f = ir::Format::f32) {
  ir::Builder b;
  auto [i, j, x] = ir::axes<"i j x">();
  ir::Tensor a = b.input("a", {m, k}, f), w = b.input("w", {k, n}, f);
  b.output(ir::map({i, j}, ir::sum(x, a(i, x) * w(x, j))), "y", f);
  return b.graph();
}
inline ir::Graph convolution(int64_t c, int64_t k, int64_t p, int64_t q, int64_t r, int64_t s, int64_t stride) {
  ir::Builder b;
  auto [ko, po, qo, ci, ri, si] = ir::axes<"k p q c r s">();
  ir::Tensor x = b.input("x", {c, stride * (p - 1) + r, stride * (q - 1) + s}), w = b.input("w", {k, c, r, s});
  ir::Axis po2 = ir::axis("p", p), qo2 = ir::axis("q", q);
  b.output(ir::map({ko, po2, qo2}, ir::sum({ci, ri, si}, x(ci, stride * po2 + ri, stride * qo2 + si) * w(ko, ci, ri, si))), "y");
  return b.graph();
}
// Scores inlined by hand as the optimizer leaves them: one fold with the online state, the dot products a fold of their own.
inline ir::Graph attention(int64_t queries, int64_t keys, int64_t d, bool causal = false) {
  ir::Builder b;
  auto [i, j, x, c] = ir::axes<"i j x c">();
  ir::Tensor q = b.input("q", {queries, d}), k = b.input("k", {keys, d}), v = b.input("v", {keys, d});
  ir::Scalar score = ir::sum(x, q(i, x) * k(j, x));
  if (causal) score = ir::masked(j <= i, score);
  auto state = ir::fold(ir::online_softmax(2), j, {score, ir::Scalar(1), v(j, c)});
  b.output(ir::map({i, c}, ir::ratio(state[2], state[1])), "o");
  return b.graph();
}
inline ir::NodeId node_with_folds(const ir::Graph& g, size_t which = 0) {
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp(); c && !c->folds.empty() && which-- == 0) return id;
  return 0;
}
inline ir::NodeId last_fold(const ir::Graph& g) {
  ir::NodeId at = 0;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* c = g[id].comp(); c && c->monoid) at = id;
  return at;
}
inline Bound must(const Result<Nest>& n, int64_t memory) {
  if (!n) throw std::runtime_error(n.why());
  auto b = bound::bound(*n, memory);
  if (!b) throw std::runtime_error(b.why());
  EXPECT_EQ(failure(b->certificate), "") << n->name;
  return *b;
}
inline std::string text(const std::vector<Rational>& v) {
  std::string out;
  for (auto& x : v) out += (out.empty() ? "" : " ") + x.text();
  return out;
}

}  // namespace tang::test
