#include "tang/expr/order.hpp"

#include <unordered_map>

namespace tang::expr {

Id ordered(Pool& p, Id root) {
  std::unordered_map<Id, Id> done;
  for (Id x : schedule(p, {root})) {
    const Term t = p[x];
    if (!t.arity()) {
      done[x] = x;
      continue;
    }
    std::vector<Id> a;
    for (int k = 0; k < t.arity(); ++k) a.push_back(done.at(t.args[size_t(k)]));
    if (t.arity() == 2 && row(t.op).commutative && p.before(a[1], a[0])) std::swap(a[0], a[1]);
    done[x] = p.make(t.op, a);
  }
  return done.at(root);
}

} // namespace tang::expr
