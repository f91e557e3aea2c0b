#include "tang/kernel/add_in_place.hpp"

#include <map>

namespace tang::kernel {

bool same_place(const Ref& a, const Ref& b) {
  if (a.memory != b.memory || a.index.size() != b.index.size()) return false;
  for (size_t d = 0; d < a.index.size(); ++d)
    if (!(a.index[d].affine == b.index[d].affine) || !a.index[d].refs.empty() || !b.index[d].refs.empty())
      return false;
  return true;
}

namespace {
// The operand of the sum that is not leaf `r`; nothing where the value is no such sum.
std::optional<Id> other_side(const Pool& p, Id value, int r) {
  const expr::Term& sum = p[value];
  if (sum.op != expr::Op::add || sum.type != Type::real) return {};
  for (size_t side : {0, 1}) {
    const expr::Term& leaf = p[sum.args[side]];
    if (leaf.op == expr::Op::arg && int(leaf.whole) == r) return sum.args[1 - side];
  }
  return {};
}
} // namespace

int added_to(const Kernel& k, const Apply& a) {
  if (a.dst.size() != 1 || a.body.values.size() != 1 || a.body.when) return -1;
  if (!a.fill.empty() && a.fill[0]) return -1;
  if (a.dst[0].memory < 0 || size_t(a.dst[0].memory) >= k.memories.size()) return -1;
  const Memory& m = k.memories[size_t(a.dst[0].memory)];
  if (m.home != Home::global || m.format != Format::f32) return -1;
  for (size_t r = 0; r < a.body.refs.size(); ++r) {
    const auto rest = same_place(a.body.refs[r], a.dst[0])
                          ? other_side(*k.pool, a.body.values[0], int(r))
                          : std::nullopt;
    if (!rest) continue;
    for (Id id : expr::schedule(*k.pool, {*rest})) {
      const expr::Term& t = (*k.pool)[id];
      if (t.op == expr::Op::arg && a.body.refs[size_t(t.whole)].memory == a.dst[0].memory) return -1;
    }
    return int(r);
  }
  return -1;
}

Body addend(const Kernel& k, const Apply& a, int to) {
  Pool& p = *k.pool;
  Body out = a.body;
  const Id rest = *other_side(p, a.body.values[0], to);
  std::map<Id, Id> now;
  for (Id id : expr::schedule(p, {rest})) {
    const expr::Term t = p[id];
    if (t.op == expr::Op::arg && int(t.whole) > to) now[id] = p.leaf(expr::Op::arg, t.type, t.whole - 1);
  }
  out.values = {expr::substitute(p, rest, now)};
  out.refs.erase(out.refs.begin() + to);
  return out;
}

} // namespace tang::kernel
