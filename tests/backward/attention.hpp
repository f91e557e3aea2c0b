// Attention and its backward written by hand as one graph, in the shape that differentiation gives it: the scores
// are recomputed from q, k and the row statistics, and every gradient is a sum over (query, key) of products.
#pragma once
#include <cmath>

#include "tang/models/attention.hpp"

namespace tang::test {

struct AttentionSize {
  int64_t batch = 1, heads = 2, group = 0, rows = 33, keys = 33, d = 8, c = 8; // group 0: one key head per head
  bool causal = false;
  int64_t window = 0;
  double cap = 0;
  bool alibi = false;
  bool keep = false; // a stored mask of booleans
  bool row_sums = false; // lse is an output, too
  int64_t distances = 0; // a learned bias of each distance key - row in [-distances, distances]
};

// q [b, h, i, d], or [b, g, r, i, d] with groups; outputs o, dq, dk, dv, and dslope or dtable where there is one.
inline ir::Graph attention_with_backward(const AttentionSize& z) {
  using namespace ir;
  Builder b;
  const bool grouped = z.group > 0;
  std::vector<Extent> heads{z.batch, z.heads}, wide = heads;
  if (grouped) wide.push_back(z.group);
  auto shape = [](std::vector<Extent> s, int64_t rows, int64_t columns) {
    s.push_back(rows), s.push_back(columns);
    return s;
  };
  Tensor q = b.input("q", shape(wide, z.rows, z.d)), k = b.input("k", shape(heads, z.keys, z.d)),
         v = b.input("v", shape(heads, z.keys, z.c)), dout = b.input("do", shape(wide, z.rows, z.c));
  models::AttentionOptions how;
  how.naive = true;
  if (z.causal) how.mask = models::causal();
  if (z.window) how.mask = how.mask ? *how.mask && models::window(z.window) : models::window(z.window);
  if (z.cap != 0) how.changes.push_back(models::soft_cap(z.cap));
  Tensor slopes, table, keep;
  if (z.keep) how.keep = keep = b.input("keep", {z.rows, z.keys}, Format::boolean);
  std::vector<Extent> per_head(wide.begin() + 1, wide.end());
  if (z.alibi) how.changes.push_back(models::alibi(slopes = b.input("slopes", per_head)));
  if (z.distances) how.changes.push_back(models::distance_bias(table = b.input("table", {2 * z.distances + 1}), z.distances));
  const models::Attention f = models::attention(q, k, v, how);
  b.output(f.out, "o");
  if (z.row_sums) b.output(f.lse, "lse");

  auto [a, h, r, i, j] = axes<"a h r i j">();
  auto at = [&](bool grouped_, std::vector<Axis> more) {
    std::vector<Axis> out{a, h};
    if (grouped_ && grouped) out.push_back(r);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  auto here = [&](bool grouped_, std::vector<Axis> more) { return models::coords(at(grouped_, std::move(more))); };
  auto [x, y, u, w, p] = axes<"x y u w p">();
  const double scale = 1 / std::sqrt(double(z.d));
  const Index position = Index(i) + Index(z.keys - z.rows);
  const Scalar dot = sum(x, q.at(here(true, {i, x})) * k.at(here(false, {j, x}))) * scale;
  const Scalar bent = z.cap != 0 ? tanh(dot * (1 / z.cap)) : Scalar();
  Scalar score = z.cap != 0 ? z.cap * bent : dot;
  if (z.alibi) score = score - slopes.at(grouped ? models::coords({h, r}) : models::coords({h})) * to_real(iota(position - Index(j)));
  if (z.distances) score = score + table.at({position - Index(j) + Index(z.distances)});
  Scalar weight = exp(score - f.lse.at(here(true, {i})));
  if (z.keep) weight = masked(keep.at({i, j}), weight);
  if (z.causal) weight = masked(Index(j) <= position, weight);
  if (z.window) weight = masked(Index(j) > position - Index(z.window), weight);
  const Tensor delta = map(at(true, {i}), sum(p, dout.at(here(true, {i, p})) * f.out.at(here(true, {i, p}))), "delta");
  const Scalar dweight = sum(w, dout.at(here(true, {i, w})) * v.at(here(false, {j, w})));
  const Scalar dscore = weight * (dweight - delta.at(here(true, {i})));
  const Scalar ddot = (z.cap != 0 ? dscore * (1 - bent * bent) : dscore) * scale;
  const Axis e = axis("e");
  std::vector<Axis> queries{i};
  if (grouped) queries = {r, i};
  b.output(map(at(true, {i, y}), sum(j, ddot * k.at(here(false, {j, y}))), "dq"), "dq");
  b.output(map(at(false, {j, y}), sum(queries, ddot * q.at(here(true, {i, y}))), "dk"), "dk");
  b.output(map(at(false, {j, u}), sum(queries, weight * dout.at(here(true, {i, u}))), "dv"), "dv");
  if (z.alibi)
    b.output(map(grouped ? std::vector<Axis>{h, r} : std::vector<Axis>{h}, sum({a, i, j}, -1.0 * dscore * to_real(iota(position - Index(j)))), "dslopes"), "dslopes");
  if (z.distances) {
    const Axis t = axis("t", Extent(2 * z.distances + 1));
    std::vector<Axis> over{a, h, i, j};
    if (grouped) over.push_back(r);
    b.output(map({t}, sum(over, masked(Index(t) == position - Index(j) + Index(z.distances), dscore))), "dtable");
  }
  return b.graph();
}

} // namespace tang::test
