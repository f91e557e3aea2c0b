#include <cmath>

#include "tang/emit/cuda_rows.hpp"
#include "tang/kernel/fragment.hpp"

// Sums of the columns that have one key, a sum a key: a warp's part of a block has few of the keys, and adds
// nothing to the others' sums.
namespace tang::emit {

namespace {
using expr::Op;
using kernel::role::Rows;

struct Keyed {
  int memory;   // the tile of keys
  int64_t key;  // whose columns are added
  bool operator==(const Keyed&) const = default;
};

// select(tile == number, x, 0), added up.
std::optional<Keyed> keyed(const Unit& u, const kernel::role::Stmt& s) {
  constexpr double exact = 1 << 24; // integers below are floats
  const auto* rows = std::get_if<Rows>(&s.node);
  const auto* f = rows ? std::get_if<kernel::Fold>(&rows->what.node) : nullptr;
  if (!f || f->dst.size() != 1 || !f->accumulate || rows->column < 0) return {};
  const kernel::Pool& p = *u.k.pool;
  const expr::Term pick = p[f->body.values[0]];
  if (p[f->combine[0]].op != Op::add || pick.op != Op::select) return {};
  const expr::Term same = p[pick.args[0]], none = p[pick.args[2]];
  if (same.op != Op::equal || none.op != Op::literal || none.r != 0) return {};
  for (int side : {0, 1}) {
    const expr::Term tile = p[same.args[size_t(side)]], key = p[same.args[size_t(1 - side)]];
    if (tile.op != Op::arg || key.op != Op::literal || key.type != expr::Type::real) continue;
    const int memory = f->body.refs[size_t(tile.whole)].memory;
    const kernel::Memory& m = u.memory(memory);
    if (m.home != kernel::Home::fragment || expr::row(m.format).bits != 32) continue;
    if (kernel::fragment_shape(m).columns != f->folded[0].extent) continue;
    if (std::floor(key.r) == key.r && std::fabs(key.r) < exact) return Keyed{memory, int64_t(key.r)};
  }
  return {};
}
} // namespace

size_t print_keyed(Unit& u, const kernel::role::Block& b, size_t from) {
  const auto first = keyed(u, b[from]);
  size_t n = 0;
  while (first && from + n < b.size()) {
    const auto k = keyed(u, b[from + n]);
    if (!k || k->memory != first->memory) break;
    ++n;
  }
  if (n < 2) return 0;
  const std::string lo = u.fresh("lo"), hi = u.fresh("hi"), tile = "m" + number(int64_t(first->memory));
  u.open("");
  u.line("float least = " + tile + "[0], most = least;");
  u.line("#pragma unroll");
  u.line("for (int e = 1; e < " + number(kernel::fragment_shape(u.memory(first->memory)).columns / 2) +
         "; ++e) least = fminf(least, " + tile + "[e]), most = fmaxf(most, " + tile + "[e]);");
  u.line("const int " + lo + " = __reduce_min_sync(0xffffffffu, (int)least), " + hi +
         " = __reduce_max_sync(0xffffffffu, (int)most);");
  for (size_t i = 0; i < n; ++i) {
    const std::string key = number(keyed(u, b[from + i])->key);
    u.open("if (" + lo + " <= " + key + " && " + key + " <= " + hi + ")");
    print_rows(u, std::get<Rows>(b[from + i].node));
    u.close();
  }
  u.close();
  return n;
}

} // namespace tang::emit
