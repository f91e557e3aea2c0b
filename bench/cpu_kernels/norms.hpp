// Row softmax and rms norm over [rows, columns]: one pass over memory, a row stays in the near cache.
#pragma once
#include "words.hpp"

namespace cpu_kernels {

struct RowBlocks {
  int64_t rows = 4; // of a workgroup
  int ways = 4;
};

// Arguments x, y.
inline Kernel row_softmax(const std::string& name, int64_t rows, int64_t columns, const RowBlocks& z = {}) {
  Kernel k;
  k.name = name;
  const int x = global(k, "x", {rows, columns}, Access::read),
            y = global(k, "y", {rows, columns}, Access::write);
  const int top = tile(k, "top", {1}, Home::register_), sum = tile(k, "sum", {1}, Home::register_),
            inv = tile(k, "inv", {1}, Home::register_);
  const int e = tile(k, "e", {columns});
  const Var r0 = k.fresh("r0"), r = k.fresh("r"), j = k.fresh("j"), end = k.fresh("end"),
            one = k.fresh("one");
  k.grid = {{r0, rows, z.rows}};
  k.body.push_back({Let{end, Let::min, {v(r0) + z.rows, constant(rows)}, 1, {}}});
  const Ref here = ref(x, {v(r), v(j)});
  const E a0 = arg(k, 0), a1 = arg(k, 1);
  auto only = [&](int t) { return ref(t, {v(one)}); };
  const TileAxis unit{one, 1}, across{j, columns};
  Loop l{r, v(r0), v(end), 1, {}};
  l.body.push_back(fold(k, {{unit}, {across}, only(top), {here}, a0, true, false, 1, z.ways}));
  l.body.push_back(
      apply({{unit, across}, ref(e, {v(j)}), {here, only(top)}, expr::exp2((a0 - a1) * expr::log2_e), 1}));
  l.body.push_back(fold(k, {{unit}, {across}, only(sum), {ref(e, {v(j)})}, a0, false, false, 1, z.ways}));
  l.body.push_back(apply({{unit}, only(inv), {only(sum)}, expr::recip(a0)}));
  l.body.push_back(apply({{unit, across}, ref(y, {v(r), v(j)}), {ref(e, {v(j)}), only(inv)}, a0 * a1, 1}));
  k.body.push_back({l});
  return k;
}

// Arguments x, gain, y.
inline Kernel rms_norm(const std::string& name, int64_t rows, int64_t columns, double eps,
                       const RowBlocks& z = {}) {
  Kernel k;
  k.name = name;
  const int x = global(k, "x", {rows, columns}, Access::read), g = global(k, "gain", {columns}, Access::read);
  const int y = global(k, "y", {rows, columns}, Access::write);
  const int sum = tile(k, "sum", {1}, Home::register_), inv = tile(k, "inv", {1}, Home::register_);
  const Var r0 = k.fresh("r0"), r = k.fresh("r"), j = k.fresh("j"), end = k.fresh("end"),
            one = k.fresh("one");
  k.grid = {{r0, rows, z.rows}};
  k.body.push_back({Let{end, Let::min, {v(r0) + z.rows, constant(rows)}, 1, {}}});
  const Ref here = ref(x, {v(r), v(j)});
  const E a0 = arg(k, 0), a1 = arg(k, 1), a2 = arg(k, 2);
  const TileAxis unit{one, 1}, across{j, columns};
  Loop l{r, v(r0), v(end), 1, {}};
  l.body.push_back(fold(k, {{unit}, {across}, ref(sum, {v(one)}), {here}, a0 * a0, false, false, 1, z.ways}));
  l.body.push_back(apply({{unit},
                          ref(inv, {v(one)}),
                          {ref(sum, {v(one)})},
                          expr::recip(expr::sqrt(a0 / double(columns) + eps))}));
  l.body.push_back(apply(
      {{unit, across}, ref(y, {v(r), v(j)}), {here, ref(inv, {v(one)}), ref(g, {v(j)})}, a0 * a1 * a2, 1}));
  k.body.push_back({l});
  return k;
}

} // namespace cpu_kernels
