#include "tang/kernel/fragment.hpp"

namespace tang::kernel {

int Fragment::lanes() const { return int(Layout{lane, {}}.size()); }

int Fragment::elements() const { return int(Layout{element, {}}.size()); }

Layout Fragment::map() const { return joined({lane, {}}, {element, {}}); }

// A lane is (group of 4: 8, place in it: 4). Pairs of columns lie in one register; then rows 8 apart, then
// columns 8 apart.
std::vector<Fragment> mma_m16n8k16() {
  const char* name = "mma.sync.m16n8k16";
  return {
      {name, 'a', Team::subgroup, 16, 16, {{8, 16}, {4, 2}}, {{2, 8}, {2, 8 * 16}, {2, 1}}},
      {name, 'b', Team::subgroup, 16, 8, {{8, 1}, {4, 2 * 8}}, {{2, 8 * 8}, {2, 8}}},
      {name, 'd', Team::subgroup, 16, 8, {{8, 8}, {4, 2}}, {{2, 8 * 8}, {2, 1}}},
  };
}

Fragment wgmma_a() {
  return {"wgmma.m64k16",
          'a',
          Team::warpgroup,
          64,
          16,
          {{4, 16 * 16}, {8, 16}, {4, 2}},
          {{2, 8}, {2, 8 * 16}, {2, 1}}};
}

Fragment wgmma_d(int n) {
  check(n > 0 && n % 8 == 0, "wgmma: n is a multiple of 8");
  return {"wgmma.m64k16",
          'd',
          Team::warpgroup,
          64,
          n,
          {{4, 16 * n}, {8, n}, {4, 2}},
          {{n / 8, 8}, {2, 8 * n}, {2, 1}}};
}

Cast is_cast(const Fragment& d, int column, const Fragment& operand) {
  if (d.lanes() != operand.lanes() || d.rows != operand.rows || column + operand.columns > d.columns)
    return {false, 0};
  const Layout from = d.map(), to = operand.map();
  const int de = d.elements(), oe = operand.elements();
  int first = -1;
  for (int e = 0; e < de && first < 0; ++e)
    if (from(e) == column) first = e;
  if (first < 0 || first + oe > de) return {false, 0};
  for (int l = 0; l < d.lanes(); ++l)
    for (int e = 0; e < oe; ++e) {
      const int64_t x = from(int64_t(l) * de + first + e), y = to(int64_t(l) * oe + e);
      if (x / d.columns != y / operand.columns || x % d.columns != column + y % operand.columns)
        return {false, 0};
    }
  return {true, first};
}

} // namespace tang::kernel
