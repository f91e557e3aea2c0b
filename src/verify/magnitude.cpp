#include "tang/verify/magnitude.hpp"

#include <cmath>

#include "tang/expr/build.hpp"

namespace tang::verify {

using expr::E;
using expr::Op;
using expr::Pool;
using ir::Id;

namespace {
// |a| + |b| for a + b, |a| |b| for a b; any other real operation by its value.
struct Sizes {
  Pool& p;
  std::unordered_map<Id, Id> done = {};

  Id operator()(Id id) {
    if (p[id].type != expr::Type::real) return id;
    if (auto it = done.find(id); it != done.end()) return it->second;
    const Id out = size(id);
    return done[id] = out;
  }

  Id size(Id id) {
    const expr::Term t = p[id];
    auto in = [&](size_t k) { return (*this)(t.args[k]); };
    switch (t.op) {
    case Op::add:
    case Op::mul: return p.make(t.op, {in(0), in(1)});
    case Op::neg: return in(0);
    case Op::select: return p.make(t.op, {t.args[0], in(1), in(2)});
    case Op::only: return p.make(t.op, {t.args[0], in(1)});
    case Op::or_else: return p.make(t.op, {in(0), in(1)});
    case Op::ratio: return p.make(t.op, {in(0), expr::abs(E{&p, t.args[1]}).id});
    default: return expr::abs(E{&p, id}).id;
    }
  }
};
} // namespace

double magnitude(const ir::Graph& g, eval::Oracle& o, ir::Port at) {
  const ir::Comp* n = g[at.node].comp();
  if (!n || n->lift.size() != 1 || g.type(at) != expr::Type::real) return 0;
  if (n->monoid && !ir::is_plain(g.pool, *n->monoid, Op::add)) return 0;
  ir::Graph sized = g;
  ir::Comp sum = *n;
  sum.lift = {Sizes{sized.pool}(n->lift[0])};
  const ir::NodeId id = sized.add({sum, g[at.node].name + " size", g[at.node].where});
  eval::Inputs none;
  eval::Oracle other(sized, none);
  for (ir::Port s : ir::sources(g, at.node)) other.place(s, o.port(s));
  double out = 0;
  const eval::Array& a = other.port({id, 0});
  for (int64_t k = 0; k < a.size(); ++k)
    if (a.at(k).state == expr::State::present && std::isfinite(a.r[size_t(k)]))
      out = std::max(out, a.r[size_t(k)]);
  return out;
}

} // namespace tang::verify
