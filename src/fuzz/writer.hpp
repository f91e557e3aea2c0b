// One comprehension whose body reads by plain axes: point axes first, then folds. Private to the room.
#pragma once
#include "tang/fuzz/generator.hpp"

namespace tang::fuzz {

// The monoid over the graph's own terms.
ir::Monoid monoid_in(Graph& g, const ir::MonoidSpec& m);

struct Writer {
  Graph& g;
  Comp c;

  Writer(Graph& g_, std::vector<Extent> points, std::vector<Extent> folds = {}) : g(g_) {
    c.points = std::move(points);
    c.folds = std::move(folds);
    ir::Out o;
    for (size_t a = 0; a < c.points.size(); ++a) o.axes.push_back(int(a));
    c.outs = {o};
  }

  E through(Port p, const std::vector<Form>& view) {
    c.args.push_back({p, view});
    return {&g.pool, g.pool.leaf(Op::arg, g.type(p), int64_t(c.args.size()) - 1)};
  }

  E at(Port p, const std::vector<int>& axes) {
    std::vector<Form> view;
    for (int a : axes) view.push_back(ir::axis(a));
    return through(p, view);
  }

  Form index_at(Port p, const std::vector<int>& axes) { // as a coordinate
    at(p, axes);
    return ir::uniform(int(c.args.size()) - 1);
  }

  E coordinate(int a) { return {&g.pool, g.pool.leaf(Op::coord, Type::index, a)}; }

  E masked(const ir::Domain& d, E e) {
    c.guards.push_back(d);
    return expr::only({&g.pool, g.pool.leaf(Op::holds, Type::boolean, int64_t(c.guards.size()) - 1)}, e);
  }

  E within(const ir::Domain& d, E e, double pad) { // a read guard
    return expr::or_else(masked(d, e), expr::lit(g.pool, pad));
  }

  Comp of(E body) {
    c.lift = {body.id};
    return std::move(c);
  }

  Comp folded(const ir::MonoidSpec& m, const std::vector<E>& lifts) {
    c.monoid = monoid_in(g, m);
    c.outs.resize(lifts.size(), c.outs[0]);
    for (E e : lifts) c.lift.push_back(e.id);
    return std::move(c);
  }

  Comp folded(const ir::MonoidSpec& m, E body) { return folded(m, std::vector<E>{body}); }
};

} // namespace tang::fuzz
