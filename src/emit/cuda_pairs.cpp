#include "tang/emit/cuda_pairs.hpp"

#include <algorithm>

#include "tang/emit/cuda_row_text.hpp"

namespace tang::emit {

namespace {
// Does every read of `n` elements from column c on, c a multiple of n, begin at a multiple of n places and
// end inside the array if it begins there?
bool in_runs(const Unit& u, const kernel::Ref& r, kernel::Var column, int64_t n) {
  const kernel::Memory& m = u.memory(r.memory);
  if (m.home != kernel::Home::global || column < 0 || r.index.empty()) return false;
  if (m.format != Format::f32 && m.format != Format::bf16 && m.format != Format::f16) return false;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const bool last = d + 1 == r.index.size();
    const kernel::Affine& at = r.index[d].affine;
    if (!r.index[d].refs.empty() || coefficient(at, column) != (last ? 1 : 0)) return false;
    if (last ? m.strides[d] != 1 || m.shape[d] % n || at.c % n : m.strides[d] % n != 0) return false;
    if (at.c && !r.checked) return false; // a guard may stand for its range
    for (auto& [v, k] : at.terms) {
      if (!last || v == column) continue;
      const auto g = std::find_if(u.k.grid.begin(), u.k.grid.end(), [v = v](auto& x) { return x.var == v; });
      if (k % n && (g == u.k.grid.end() || k * g->step % n)) return false;
    }
  }
  return true;
}
} // namespace

bool in_pairs(const Unit& u, const kernel::Ref& r, kernel::Var column) { return in_runs(u, r, column, 2); }

bool in_quads(const Unit& u, const kernel::Ref& r, kernel::Var column) {
  return in_runs(u, r, column, 8) && expr::row(u.memory(r.memory).format).bits == 16;
}

namespace rows_text {
// What the roots read outside of the fragments, column by column, in the way that `how` asks for.
std::vector<const Ref*> RowText::read_in(const std::vector<Id>& roots,
                                         bool (*how)(const Unit&, const Ref&, Var)) const {
  std::vector<const Ref*> out;
  for (Id id : expr::schedule(p_, roots)) {
    if (p_[id].op != Op::arg || names_.count(id)) continue;
    const Ref& r = b_.refs[size_t(p_[id].whole)];
    if (how(u_, r, column_) && std::find(out.begin(), out.end(), &r) == out.end()) out.push_back(&r);
  }
  return out;
}

int RowText::open_pairs(int64_t n, const std::vector<Id>& roots, int64_t from) {
  constexpr int64_t together = 8; // pairs: of four groups of columns, two rows each
  const bool quads = n % together == 0 && from % together == 0 && !read_in(roots, in_quads).empty();
  u_.line("#pragma unroll");
  if (quads) {
    u_.open("for (int e8 = " + number(from / together) + "; e8 < " + number((from + n) / together) + "; ++e8)");
    load_quads(roots);
    u_.line("#pragma unroll");
    u_.open("for (int e2 = 8 * e8; e2 < 8 * e8 + 8; ++e2)");
  } else {
    u_.open("for (int e2 = " + number(from) + "; e2 < " + number(from + n) + "; ++e2)");
  }
  load_pairs(roots);
  return quads ? 2 : 1;
}

// Each lane brings 8 columns of its two rows; its pair of each group of 8 comes from one of the row's lanes.
void RowText::load_quads(const std::vector<Id>& roots) {
  for (const Ref* r : read_in(roots, in_quads)) {
    const std::string as = quads_[r] = u_.fresh("quads");
    const auto [at, inside] = address(*r, false);
    u_.line("uint32_t " + as + "[2][4] = {};");
    u_.line("#pragma unroll");
    u_.open("for (int r = 0; r < 2; ++r)");
    if (row_.flat >= 0) print_row(u_, row_, "own + 8 * r");
    u_.line("const int " + name(column_) + " = e8 * 32 + (pair & 7) * 4 + (pair & ~7);");
    u_.line((r->checked ? "if (" + inside + ") " : "") + "tang_quad(" + as + "[r], m" +
            std::to_string(r->memory) + " + " + at + ");");
    u_.line("tang_share_quad(" + as + "[r]);");
    u_.close();
  }
}

void RowText::load_pairs(const std::vector<Id>& roots) {
  for (const Ref* r : read_in(roots, in_pairs)) {
    const std::string as = pairs_[r] = u_.fresh("two"), format = expr::row(u_.memory(r->memory).format).name;
    u_.line("float " + as + "[2] = {};");
    if (auto it = quads_.find(r); it != quads_.end()) {
      u_.line("tang_both_" + format + "(" + as + ", " + it->second + "[e2 & 1][e2 >> 1 & 3]);");
      continue;
    }
    const auto [at, inside] = address(*r, false);
    u_.open("");
    u_.line("const int e = 2 * e2;");
    name_coordinates(false);
    u_.line((r->checked ? "if (" + inside + ") " : "") + "tang_two_" + format + "(" + as + ", m" +
            std::to_string(r->memory) + " + " + at + ");");
    u_.close();
  }
}
} // namespace rows_text

} // namespace tang::emit
