// Attention and its derived gradient as one graph.
#pragma once
#include "tang/grad/surface.hpp"
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

  std::vector<Tensor> by{q, k, v};
  std::vector<std::string> names{"dq", "dk", "dv"};
  if (z.alibi) by.push_back(slopes), names.push_back("dslopes");
  if (z.distances) by.push_back(table), names.push_back("dtable");
  const std::vector<Tensor> d = diff::vjp(f.out, dout, by);
  for (size_t x = 0; x < d.size(); ++x) b.output(d[x], names[x]);
  return b.graph();
}

} // namespace tang::test
