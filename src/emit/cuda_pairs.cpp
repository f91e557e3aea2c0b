#include "tang/emit/cuda_pairs.hpp"

#include <algorithm>

namespace tang::emit {

bool in_pairs(const Unit& u, const kernel::Ref& r, kernel::Var column) {
  const kernel::Memory& m = u.memory(r.memory);
  if (m.home != kernel::Home::global || column < 0 || r.index.empty()) return false;
  if (m.format != Format::f32 && m.format != Format::bf16 && m.format != Format::f16) return false;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const bool last = d + 1 == r.index.size();
    const kernel::Affine& at = r.index[d].affine;
    if (!r.index[d].refs.empty() || coefficient(at, column) != (last ? 1 : 0)) return false;
    if (last ? m.strides[d] != 1 || m.shape[d] % 2 || at.c % 2 : m.strides[d] % 2 != 0) return false;
    if (at.c && !r.checked) return false; // a guard may stand for its range
    for (auto& [v, k] : at.terms) {
      if (!last || v == column) continue;
      const auto g = std::find_if(u.k.grid.begin(), u.k.grid.end(), [v = v](auto& x) { return x.var == v; });
      if (k % 2 && (g == u.k.grid.end() || g->step % 2)) return false;
    }
  }
  return true;
}

} // namespace tang::emit
