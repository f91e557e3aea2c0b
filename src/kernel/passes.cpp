#include "tang/kernel/passes.hpp"

#include <set>

#include "tang/expr/effort.hpp"

namespace tang::kernel {

int effort_along(const Pool& pool, const Body& body, Var v) {
  std::set<Id> moving;
  int out = 0;
  for (Id id : expr::schedule(pool, body.values)) {
    const expr::Term& t = pool[id];
    bool moves = t.op == expr::Op::coord && t.whole == v;
    if (t.op == expr::Op::arg)
      for (auto& c : body.refs[size_t(t.whole)].index) moves |= coefficient(c.affine, v) != 0 || !c.refs.empty();
    for (int k = 0; k < t.arity(); ++k) moves |= moving.count(t.args[size_t(k)]) > 0;
    if (!moves) continue;
    moving.insert(id);
    out += expr::effort(t.op);
  }
  return out;
}
} // namespace tang::kernel
