#include "tang/grad/linear.hpp"

#include "tang/expr/build.hpp"
#include "tang/expr/diff.hpp"
#include "tang/ir/monoids.hpp"

namespace tang::diff {

using rewrite::Import;

std::vector<Form> here(size_t axes) {
  std::vector<Form> out;
  for (size_t a = 0; a < axes; ++a) out.push_back(ir::axis(int(a)));
  return out;
}

ir::Out every_axis(size_t axes) {
  ir::Out out;
  for (size_t a = 0; a < axes; ++a) out.axes.push_back(int(a));
  return out;
}

Id read_at(Graph& g, Comp& n, Port from, std::vector<Form> view) {
  return rewrite::read_leaf(g.pool, g.type(from), rewrite::add_read(n, {from, std::move(view)}));
}

ir::Monoid sum_monoid(Pool& p) {
  const expr::E x{&p, p.leaf(Op::var, Type::real, 0)}, y{&p, p.leaf(Op::var, Type::real, 1)};
  return {"sum", {expr::real(0)}, {(x + y).id}, true};
}

bool folds_alone(const Pool& p, const Comp& n, size_t c, Op op) {
  return n.monoid && n.monoid->identity[c].type == Type::real && rewrite::is_plain_component(p, n, c, op);
}

namespace {

bool within(const std::vector<int>& some, const std::vector<int>& all) {
  return std::all_of(some.begin(), some.end(),
                     [&](int a) { return std::find(all.begin(), all.end(), a) != all.end(); });
}

// Everything of one port of a comprehension: its points, what it sees, the reads it makes.
struct Liner {
  Graph& g;
  const Comp n; // by value: the graph grows
  size_t c;
  const std::string name;
  Where where;
  Pool& p = g.pool;
  std::vector<int> seen = {};    // components that the port sees
  std::vector<Id> lifts = {};    // their values, over `out.at`
  std::map<int, int> place = {}; // axis of n -> axis of out.at
  Linear out = {};

  void open() {
    if (!rewrite::axes_fit(n)) throw Refused{name + ": more axes than a gradient is taken over"};
    out.map = n.is_map();
    const std::vector<int>& own = n.outs[c].axes;
    std::vector<int> points = own;
    std::sort(points.begin(), points.end());
    for (int a : points) {
      place[a] = int(out.at.points.size());
      out.at.points.push_back(n.points[size_t(a)]);
    }
    out.at.folds = n.folds;
    for (size_t f = 0; f < n.folds.size(); ++f) place[int(n.points.size() + f)] = int(points.size() + f);
    const std::function<Form(int)> at = [&](int a) {
      auto it = place.find(a);
      check(it != place.end(), "a component reads an axis that it does not have: " + name);
      return ir::axis(it->second);
    };
    Import in(p, n, out.at, at);
    out.at.domain = in.domain(n.domain);
    out.out = n.outs[c];
    for (int& a : out.out.axes) a = place.at(a);
    for (Form& f : out.out.view) f = in.form(f);
    out.when = expr::yes(p);
    for (size_t k = 0; k < n.lift.size(); ++k) {
      if (k != c && !(n.monoid && within(n.outs[k].axes, own))) continue;
      const expr::Present x = expr::present(p, in.body(n.lift[k]));
      seen.push_back(int(k));
      lifts.push_back(x.value);
      out.when = expr::both(p, out.when, rewrite::ordered(p, x.when));
    }
    if (!in.why().empty()) throw Refused{name + ": " + in.why()};
  }

  size_t position(size_t component) const {
    return size_t(std::find(seen.begin(), seen.end(), int(component)) - seen.begin());
  }

  // The fold's coordinates as one number, row-major.
  Form flat() {
    Form f = ir::constant(0);
    for (size_t k = 0; k < n.folds.size(); ++k) {
      if (k && !n.folds[k].is_constant())
        throw Refused{name + ": the largest of several axes, one of them symbolic (" + n.folds[k].text() +
                      ")"};
      f = (k ? n.folds[k].value() : 1) * f + ir::axis(int(out.at.points.size() + k));
    }
    return f;
  }

  // Only the term that wins counts: the domain asks that its coordinates are those of the arg-max.
  void gate(bool largest) {
    Comp best = out.at;
    const Form f = flat();
    Id value = lifts[position(c)];
    if (out.when != expr::yes(p)) value = p.make(Op::only, {out.when, value});
    best.lift = {value, *rewrite::as_term(p, f)};
    best.outs = {every_axis(best.points.size()), every_axis(best.points.size())};
    const ir::MonoidSpec& spec = largest ? ir::argmax() : ir::argmin();
    std::vector<expr::E> left, right;
    for (int k = 0; k < 2; ++k)
      for (int side = 0; side < 2; ++side)
        (side ? right : left).push_back({&p, p.leaf(Op::var, spec.identity[size_t(k)].type, 2 * k + side)});
    ir::Monoid m{spec.name, spec.identity, {}, true};
    for (auto& e : spec.combine(p, left, right)) m.combine.push_back(e.id);
    best.monoid = m;
    const Port at{g.add({best, "arg " + name, where}), 1};
    const int u = rewrite::add_read(out.at, {at, here(out.at.points.size())});
    ir::Conj hit;
    insert(hit, f - ir::uniform(u));
    insert(hit, ir::uniform(u) - f);
    out.at.domain = ir::intersection(out.at.domain, {hit});
  }

  // The fold of the terms before (or after) each term.
  NodeId around(bool before) {
    const size_t points = out.at.points.size(), folds = n.folds.size();
    Comp r;
    r.points = out.at.points;
    r.points.insert(r.points.end(), n.folds.begin(), n.folds.end());
    r.folds = n.folds;
    Import in(p, out.at, r, [&](int a) { return ir::axis(size_t(a) < points ? a : a + int(folds)); });
    Domain order; // the fold's axes are lexicographic
    for (size_t k = 0; k < folds; ++k) {
      ir::Conj piece;
      for (size_t q = 0; q <= k; ++q) {
        const Form mine = ir::axis(int(points + q)), other = ir::axis(int(points + folds + q));
        const Form gap = before ? mine - other : other - mine;
        insert(piece, q < k ? gap : gap + ir::constant(-1));
        if (q < k) insert(piece, -1 * gap);
      }
      order.push_back(piece);
    }
    order = ir::normal(order);
    const Domain all = ir::intersection(in.domain(out.at.domain), order);
    const bool fits = ir::disjoint(all).size() <= ir::most_pieces;
    r.domain = fits ? all : in.domain(out.at.domain);
    Id when = in.body(out.when);
    if (!fits) when = expr::both(p, when, rewrite::add_guard(p, r, order));
    ir::Monoid m{n.monoid->name, {}, {}, n.monoid->commutative};
    for (size_t k = 0; k < seen.size(); ++k) {
      m.identity.push_back(n.monoid->identity[size_t(seen[k])]);
      m.combine.push_back(expr::substitute(p, n.monoid->combine[size_t(seen[k])], renumbered()));
      const Id value = in.body(lifts[k]);
      r.lift.push_back(when == expr::yes(p) ? value : p.make(Op::only, {when, value}));
      r.outs.push_back(every_axis(r.points.size()));
    }
    r.monoid = m;
    if (!in.why().empty()) throw Refused{name + ": " + in.why()};
    return g.add({r, name + (before ? " before" : " after"), where});
  }

  std::map<Id, Id> renumbered() {
    std::map<Id, Id> to;
    for (size_t k = 0; k < seen.size(); ++k)
      for (int side = 0; side < 2; ++side) {
        const Type t = n.monoid->identity[size_t(seen[k])].type;
        to[p.leaf(Op::var, t, 2 * seen[k] + side)] = p.leaf(Op::var, t, 2 * int64_t(k) + side);
      }
    return to;
  }

  // Whatever the monoid: the whole is (before . term) . after, and the combine is differentiated twice over.
  void around_each_term() {
    const NodeId first = around(true), last = around(false);
    const std::vector<Form> at = here(size_t(out.at.axis_count()));
    std::map<Id, Id> join, whole, values;
    std::vector<Id> term;
    for (size_t k = 0; k < seen.size(); ++k) {
      const Type t = n.monoid->identity[size_t(seen[k])].type;
      term.push_back(p.leaf(Op::var, t, (int64_t(1) << 20) + int64_t(k)));
      values[term[k]] = lifts[k];
      join[p.leaf(Op::var, t, 2 * seen[k])] = read_at(g, out.at, {first, uint32_t(k)}, at);
      join[p.leaf(Op::var, t, 2 * seen[k] + 1)] = term[k];
    }
    for (size_t k = 0; k < seen.size(); ++k) {
      const Type t = n.monoid->identity[size_t(seen[k])].type;
      whole[p.leaf(Op::var, t, 2 * seen[k])] = expr::substitute(p, n.monoid->combine[size_t(seen[k])], join);
      whole[p.leaf(Op::var, t, 2 * seen[k] + 1)] = read_at(g, out.at, {last, uint32_t(k)}, at);
    }
    const Id all = expr::substitute(p, n.monoid->combine[c], whole);
    for (size_t k = 0; k < seen.size(); ++k)
      if (p[term[k]].type == Type::real)
        out.parts.push_back({expr::substitute(p, expr::differentiate(p, all, term[k]), values), lifts[k]});
  }
};

} // namespace

Id product(Pool& p, Id a, Id b) {
  const auto is = [&](Id x, double v) { return p[x].op == Op::literal && p[x].r == v; };
  if (is(a, 0) || is(b, 0)) return p.literal(0.0);
  const Id both = is(a, 1) ? b : is(b, 1) ? a : p.make(Op::mul, {a, b});
  return rewrite::term_of(p, rewrite::product_of(p, both));
}

std::map<int, Id> coefficients(Pool& p, const Linear& l, const std::function<bool(Port)>& moves) {
  std::map<int, Id> out;
  for (auto& part : l.parts)
    for (Id leaf : expr::subterms(p, part.value, Op::arg)) {
      const int a = int(p[leaf].whole);
      if (p[leaf].type != Type::real || !moves(l.at.args[size_t(a)].from)) continue;
      const Id t = product(p, part.factor, expr::differentiate(p, part.value, leaf));
      if (p[t].op == Op::literal && p[t].r == 0) continue;
      auto [it, fresh] = out.emplace(a, t);
      if (!fresh) it->second = p.make(Op::add, {it->second, t});
    }
  return out;
}

Linear linearise(Graph& g, NodeId id, size_t c) {
  Liner l{g, *g[id].comp(), c, g.label({id, uint32_t(c)}), g[id].where};
  l.open();
  const Pool& p = g.pool;
  const bool largest = folds_alone(p, l.n, c, Op::max), smallest = folds_alone(p, l.n, c, Op::min);
  if (largest || smallest) l.gate(largest);
  if (l.n.is_map() || largest || smallest || folds_alone(p, l.n, c, Op::add))
    l.out.parts = {{g.pool.literal(1.0), l.lifts[l.position(c)]}};
  else
    l.around_each_term();
  return std::move(l.out);
}

} // namespace tang::diff
