// C[m, n] = sum over k of A[m, k] B[k, n], row-major f32: B laid out in panels once, A in panels per block of
// rows.
#pragma once
#include "words.hpp"

namespace cpu_kernels {

struct GemmShape {
  int64_t m, n, k;
};

struct GemmBlocks {
  int rows = 12, vectors = 2, lanes = 16; // register block: rows x (vectors lanes)
  int64_t kc = 512, mc = 96, panels = 16; // cache blocks; columns of a workgroup = panels * vectors * lanes

  int64_t nr() const { return int64_t(vectors) * lanes; }
};

// b [k, n] -> p [n / nr, k, nr], columns beyond n are 0. One workgroup a panel.
inline Kernel pack_columns(const std::string& name, int64_t k, int64_t n, int64_t nr) {
  Kernel out;
  out.name = name;
  const int b = global(out, "b", {k, n}, Access::read),
            p = global(out, "p", {blocks(n, nr), k, nr}, Access::write);
  const Var panel = out.fresh("panel"), t = out.fresh("t"), j = out.fresh("j");
  out.grid = {{panel, blocks(n, nr), 1}};
  const Affine column = v(panel, nr) + v(j);
  out.body = {apply({{{t, k}, {j, nr}},
                     ref(p, {v(panel), v(t), v(j)}),
                     {ref(b, {v(t), column})},
                     arg(out, 0),
                     1,
                     {below(n, column)},
                     {},
                     expr::real(0)})};
  return out;
}

// Arguments a, p, c.
inline Kernel gemm(const std::string& name, const GemmShape& s, const GemmBlocks& z) {
  Kernel out;
  out.name = name;
  const int64_t mr = z.rows, nr = z.nr(), kc = blocks(s.k, blocks(s.k, z.kc)),
                mc = std::min(z.mc, blocks(s.m, mr) * mr);
  const int64_t panels = std::min(z.panels, blocks(s.n, nr)), all = blocks(s.n, nr);
  const int a = global(out, "a", {s.m, s.k}, Access::read),
            p = global(out, "p", {all, s.k, nr}, Access::read);
  const int c = global(out, "c", {s.m, s.n}, Access::write);
  const int at_ = tile(out, "at", {mc / mr, kc, mr});
  const Var jp = out.fresh("jp"), i0 = out.fresh("i0"), k0 = out.fresh("k0");
  out.grid = {{jp, all, panels}, {i0, s.m, mc}};
  const bool once = kc >= s.k; // one block of k: the result goes straight to c
  const int acc = once ? c : tile(out, "acc", {mc, panels * nr});
  auto axis = [&](const char* stem) { return out.fresh(stem); };
  const Var io = axis("io"), ii = axis("ii"), no = axis("no"), ni = axis("ni"), t = axis("t"), i = axis("i"),
            j = axis("j");
  if (!once)
    out.body.push_back(apply({{{i, mc}, {j, panels * nr}}, ref(acc, {v(i), v(j)}), {}, lit(out, 0), 1}));
  Pipeline pipe;
  pipe.var = k0, pipe.step = kc;
  const int64_t full = s.k / kc * kc;
  pipe.segments = {{constant(0), constant(full), false}};
  if (full < s.k) pipe.segments.push_back({constant(full), constant(s.k), true});
  const Affine row = v(i0) + v(io, mr) + v(ii);
  pipe.operands.push_back(apply({{{io, mc / mr}, {t, kc}, {ii, mr}},
                                 ref(at_, {v(io), v(t), v(ii)}),
                                 {ref(a, {row, v(k0) + v(t)})},
                                 arg(out, 0),
                                 2,
                                 {below(s.m, row)},
                                 {{below(s.k, v(k0) + v(t))}},
                                 expr::real(0)}));
  Contract x;
  x.m = {{io, mc / mr}, {ii, mr}}, x.n = {{no, panels}, {ni, nr}}, x.k = {{t, kc}};
  x.a = ref(at_, {v(io), v(t), v(ii)});
  x.b = ref(p, {v(jp) + v(no), v(k0) + v(t), v(ni)});
  const Affine m = v(io, mr) + v(ii), n = v(no, nr) + v(ni);
  x.dst = once ? ref(c, {v(i0) + m, v(jp, nr) + n}) : ref(acc, {m, n});
  x.accumulate = !once;
  x.m_end = constant(s.m) - v(i0), x.n_end = constant(s.n) - v(jp, nr), x.k_end = constant(s.k) - v(k0);
  x.rows = z.rows, x.vectors = z.vectors;
  pipe.body.push_back({x});
  out.body.push_back({pipe});
  if (!once)
    out.body.push_back(apply({{{i, mc}, {j, panels * nr}},
                              ref(c, {v(i0) + v(i), v(jp, nr) + v(j)}),
                              {ref(acc, {v(i), v(j)})},
                              arg(out, 0),
                              1,
                              {below(s.m, v(i0) + v(i)), below(s.n, v(jp, nr) + v(j))}}));
  return out;
}

} // namespace cpu_kernels
