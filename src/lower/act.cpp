#include "tang/lower/act.hpp"

#include <cmath>

#include "tang/expr/simplify.hpp"

namespace tang::lower {

using expr::Op;
using expr::Term;
using expr::Type;
using ir::Id;

Id settled_act(ir::Pool& p, Id act, const ir::Monoid& m) {
  const Term t = p[act];
  if (t.op != Op::select || p[t.args[1]].op != Op::literal || p[t.args[1]].r != 0) return act;
  const Term test = p[t.args[0]];
  if (test.op != Op::equal) return act;
  for (size_t k : {0, 1}) {
    const Term own = p[test.args[k]], low = p[test.args[1 - k]];
    if (own.op != Op::var || own.whole % 2 || low.op != Op::literal) continue;
    const size_t b = size_t(own.whole / 2);
    const double end = m.identity[b].r;
    const Op join = p[m.combine[b]].op;
    if (own.type != Type::real || low.r != end ||
        !((join == Op::max && end < 0) || (join == Op::min && end > 0)) || !std::isinf(end))
      continue;
    const Id below = expr::simplify(p, expr::substitute(p, t.args[2], {{test.args[k], test.args[1 - k]}}));
    if (p[below].op != Op::literal || p[below].r != 0) continue;
    const Id now = p.leaf(Op::var, Type::real, own.whole + 1);
    return p.make(Op::select, {p.make(Op::equal, {now, test.args[1 - k]}), t.args[1], t.args[2]});
  }
  return act;
}

bool dies_at_identity(ir::Pool& p, Id act, const ir::Monoid& m, const std::vector<int>& base) {
  std::map<Id, Id> low;
  for (int b : base) low[p.leaf(Op::var, m.identity[size_t(b)].type, 2 * b)] = p.literal(m.identity[size_t(b)]);
  const Term t = p[expr::simplify(p, expr::substitute(p, act, low))];
  return t.op == Op::literal && t.r == 0;
}

} // namespace tang::lower
