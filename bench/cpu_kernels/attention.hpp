// Flash attention forward with lanes = queries: scores are kept transposed [key, query], so that nothing but
// Q is packed, every fold is across whole vectors, and the weights are already the packed left operand of the
// second contraction.
#pragma once
#include <cmath>

#include "words.hpp"

namespace cpu_kernels {

struct AttentionShape {
  int64_t heads, n, m, d; // queries, keys
  bool causal = false;    // query i sees keys j <= i
};

struct AttentionBlocks {
  int64_t br = 96, bc = 96; // queries and keys a block
  int rows = 12, vectors = 2, pv_rows = 12, pv_vectors = 2, lanes = 16, ways = 4;
};

// Arguments q, k, v, out: [heads, length, d].
inline Kernel attention(const std::string& name, const AttentionShape& s, const AttentionBlocks& z) {
  Kernel out;
  out.name = name;
  const int64_t nr = int64_t(z.vectors) * z.lanes, br = z.br, bc = z.bc;
  const int q = global(out, "q", {s.heads, s.n, s.d}, Access::read),
            key = global(out, "k", {s.heads, s.m, s.d}, Access::read);
  const int val = global(out, "v", {s.heads, s.m, s.d}, Access::read),
            o = global(out, "out", {s.heads, s.n, s.d}, Access::write);
  const int qt = tile(out, "qt", {br / nr, s.d, nr}), st = tile(out, "st", {bc, br}),
            acc = tile(out, "acc", {br, s.d});
  const int top = tile(out, "top", {br}), next = tile(out, "next", {br}), act = tile(out, "act", {br}),
            sum = tile(out, "sum", {br});
  const Var h = out.fresh("h"), i0 = out.fresh("i0"), j0 = out.fresh("j0");
  const Var io = out.fresh("io"), ii = out.fresh("ii"), i = out.fresh("i"), j = out.fresh("j"),
            d = out.fresh("d");
  out.grid = {{h, s.heads, 1}, {i0, s.n, br}};
  const TileAxis ai{i, br}, aj{j, bc}, ad{d, s.d};
  const E a0 = arg(out, 0), a1 = arg(out, 1);
  const double scale = expr::log2_e / std::sqrt(double(s.d));
  const Affine row = v(i0) + v(io, nr) + v(ii);
  auto each = [&](int t) { return ref(t, {v(i)}); };
  auto scores = [&] { return ref(st, {v(j), v(i)}); };
  auto rows = [&] { return ref(acc, {v(i), v(d)}); };
  out.body.push_back(apply({{{io, br / nr}, ad, {ii, nr}},
                            ref(qt, {v(io), v(d), v(ii)}),
                            {ref(q, {v(h), row, v(d)})},
                            a0 * scale,
                            2,
                            {below(s.n, row)},
                            {},
                            expr::real(0)}));
  out.body.push_back(apply({{ai}, each(next), {}, lit(out, -inf), 0}));
  out.body.push_back(apply({{ai}, each(sum), {}, lit(out, 0), 0}));
  out.body.push_back(apply({{ai, ad}, rows(), {}, lit(out, 0), 1}));
  Pipeline p;
  p.var = j0, p.step = bc;
  std::vector<Bounds> visible{{below(s.m, v(j0) + v(j))}};
  if (s.causal) visible[0].push_back(at(v(i0) + v(i) - v(j0) - v(j)));
  if (s.causal) {
    const Var end = out.fresh("end"), reach = out.fresh("reach"), full = out.fresh("full");
    out.body.push_back({Let{end, Let::min, {v(i0) + br, constant(s.m)}, 1, {}}});
    out.body.push_back({Let{reach, Let::min, {v(i0) + 1, constant(s.m)}, 1, {}}});
    out.body.push_back({Let{full, Let::floor_div, {v(reach)}, bc, {}}});
    p.segments = {{constant(0), v(full, bc), false}, {v(full, bc), v(end), true}};
  } else {
    p.segments = {{constant(0), constant(s.m / bc * bc), false}};
    if (s.m % bc) p.segments.push_back({constant(s.m / bc * bc), constant(s.m), true});
  }
  Contract dot;
  dot.m = {aj}, dot.n = {{io, br / nr}, {ii, nr}}, dot.k = {ad};
  dot.dst = ref(st, {v(j), v(io, nr) + v(ii)});
  dot.a = ref(key, {v(h), v(j0) + v(j), v(d)});
  dot.b = ref(qt, {v(io), v(d), v(ii)});
  dot.m_end = constant(s.m) - v(j0);
  dot.accumulate = false, dot.rows = z.rows, dot.vectors = z.vectors;
  p.body.push_back({dot});
  p.body.push_back(apply({{ai}, each(top), {each(next)}, a0, 0}));
  p.body.push_back(fold(out, {{ai}, {aj}, each(next), {scores()}, a0, true, true, 0, z.ways, {}, visible}));
  p.body.push_back(apply({{ai},
                          each(act),
                          {each(top), each(next)},
                          expr::select(a0 == a1, lit(out, 1), expr::exp2(a0 - a1)),
                          0}));
  p.body.push_back(apply(
      {{aj, ai}, scores(), {scores(), each(next)}, expr::exp2(a0 - a1), 1, {}, visible, expr::real(0)}));
  p.body.push_back(apply({{ai}, each(sum), {each(sum), each(act)}, a0 * a1, 0}));
  p.body.push_back(fold(out, {{ai}, {aj}, each(sum), {scores()}, a0, false, true, 0, z.ways}));
  p.body.push_back(apply({{ai, ad}, rows(), {rows(), each(act)}, a0 * a1, 1}));
  Contract mix;
  mix.m = {ai}, mix.n = {ad}, mix.k = {aj};
  mix.dst = rows(), mix.a = scores(), mix.b = ref(val, {v(h), v(j0) + v(j), v(d)});
  mix.k_end = constant(s.m) - v(j0);
  mix.rows = z.pv_rows, mix.vectors = z.pv_vectors;
  p.body.push_back({mix});
  out.body.push_back({p});
  out.body.push_back(apply({{ai, ad},
                            ref(o, {v(h), v(i0) + v(i), v(d)}),
                            {rows(), each(sum)},
                            expr::ratio(a0, a1),
                            1,
                            {below(s.n, v(i0) + v(i))}}));
  return out;
}

} // namespace cpu_kernels
