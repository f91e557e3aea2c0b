#include "tang/expr/order.hpp"

#include "tang/expr/term_table.hpp"

namespace tang::expr {

Id ordered(Pool& p, Id root) {
  TermTable now;
  walk(
      p, root, now, [](Id) { return false; },
      [&](Id id) {
        auto a = now.of(p[id]);
        if (row(p[id].op).commutative && p.before(a[1], a[0])) std::swap(a[0], a[1]);
        now.set(id, p.over(id, a));
      });
  return now[root];
}

} // namespace tang::expr
