// Stored operands: a side of a product that is more than one array becomes an array of its own, which all
// products of the same side read.
#include <algorithm>

#include "tang/expr/simplify.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr int64_t fewest_terms = 16; // of a product worth matrix instructions: one step of them
constexpr int64_t most_unrolled = 4; // terms of a sum that are written out where it is read

struct Side {
  Axes points = 0, all = 0; // its own points; every axis that it names
  Product of;

  void add(Id factor, bool divides, Axes axes) {
    (divides ? of.divisors : of.factors).push_back(factor);
    all |= axes;
  }
};

int64_t terms_in(const Graph& g, const std::vector<ir::Extent>& extents) {
  return int64_t(nominal_size(extents, g.symbols));
}

// The read that a side is, if it is one array as it lies there.
std::optional<int> array_of(const Pool& p, const Comp& n, const Side& s) {
  if (s.of.factors.size() != 1 || !s.of.divisors.empty()) return {};
  const expr::Term& t = p[s.of.factors[0]];
  if (t.op != Op::arg || t.type != Type::real) return {};
  for (auto& f : n.args[size_t(t.whole)].view)
    if (!f.is_affine()) return {};
  return int(t.whole);
}

Axes long_axes(const Comp& n) {
  Axes out = 0;
  for (int a = 0; a < n.axis_count(); ++a)
    if (!(n.extent(a) == ir::Extent(1))) out |= bit(a);
  return out;
}

// What stands on no side goes to one that is no array anyway; of two arrays to the one that is no parameter.
size_t side_of_loose(const Graph& g, const Comp& n, const std::vector<Side>& sides) {
  auto rank = [&](const Side& s) {
    const auto a = array_of(g.pool, n, s);
    const ir::Input* in = a ? g[n.args[size_t(*a)].from.node].input() : nullptr;
    return !a ? 0 : !in ? 1 : in->kind == ir::Input::data ? 2 : 3;
  };
  return rank(sides[1]) < rank(sides[0]) ? 1 : 0;
}

// The two sides of one sum's term; nothing where its factors do not part in two that both name every long
// fold and points of their own.
std::vector<Side> sides_of(Graph& g, const Comp& n, size_t component) {
  Pool& p = g.pool;
  const Axes wide = long_axes(n), folds = fold_axes(n) & wide, points = own_axes(n, component) & wide;
  if (!folds || terms_in(g, n.folds) < fewest_terms) return {};
  Dependence depends(p, n);
  const Product all = product_of(p, expr::present(p, n.lift[component]).value);
  Axes batch = points;
  for (Id f : all.factors)
    if (const Axes own = depends.of(f) & points) batch &= own;
  std::vector<Side> sides;
  std::vector<std::pair<Id, bool>> loose;
  auto take = [&](Id f, bool divides) {
    const Axes axes = depends.of(f), own = axes & points & ~batch;
    if (!own) return loose.push_back({f, divides});
    Side joined;
    joined.points = own;
    joined.add(f, divides, axes);
    for (size_t s = 0; s < sides.size();) {
      if (!(sides[s].points & own)) {
        ++s;
        continue;
      }
      joined.points |= sides[s].points, joined.all |= sides[s].all;
      for (auto [from, to] : {std::pair(&sides[s].of.factors, &joined.of.factors),
                              std::pair(&sides[s].of.divisors, &joined.of.divisors)})
        to->insert(to->begin(), from->begin(), from->end());
      sides.erase(sides.begin() + long(s));
    }
    sides.push_back(std::move(joined));
  };
  for (Id f : all.factors) take(f, false);
  for (Id d : all.divisors) take(d, true);
  if (sides.size() != 2) return {};
  for (auto& [f, divides] : loose)
    if (depends.of(f)) sides[side_of_loose(g, n, sides)].add(f, divides, depends.of(f));
  for (auto& s : sides)
    if ((s.all & folds) != folds) return {};
  return sides;
}

bool adds_up(const Pool& p, const Comp& n) {
  bool out = n.monoid && !n.folds.empty() && axes_fit(n);
  for (size_t c = 0; out && c < n.lift.size(); ++c)
    out = n.monoid->identity[c].type == Type::real && is_plain_component(p, n, c, Op::add);
  return out;
}

// 0 where it is absent: a factor of a sum's term, which is then no term.
Id or_zero(Pool& p, Id term) {
  const expr::Present x = expr::present(p, term);
  if (x.when == expr::yes(p)) return x.value;
  return p.make(Op::or_else, {p.make(Op::only, {x.when, x.value}), p.literal(0.0)});
}

// A sum of few terms as the map that adds them.
std::optional<Comp> written_out(Graph& g, const Comp& n) {
  Pool& p = g.pool;
  if (!is_plain_fold(p, n, Op::add) || !n.outs[0].view.empty() || n.folds.size() != 1) return {};
  if (!n.folds[0].is_constant() || n.folds[0].value() > most_unrolled || n.folds[0].value() < 1) return {};
  Comp m;
  m.points = n.points;
  m.outs = n.outs;
  std::optional<Id> sum;
  for (int64_t k = 0; k < n.folds[0].value(); ++k) {
    Import in(p, n, m,
              [&](int a) { return size_t(a) < n.points.size() ? ir::axis(a) : ir::constant(ir::Extent(k)); });
    Id term = in.body(n.lift[0]);
    if (n.domain != ir::everywhere()) {
      const Domain d = ir::pruned(in.domain(n.domain), m.extents(), g.symbols);
      if (d != ir::everywhere()) term = p.make(Op::only, {in.guard(d), term});
    }
    if (!in.why().empty()) return {};
    term = or_zero(p, term);
    sum = sum ? p.make(Op::add, {*sum, term}) : term;
  }
  m.lift = {*sum};
  return m;
}

class Storer {
public:
  explicit Storer(Graph& g) : g_(g), p_(g.pool) {}

  // The sum with its sides stored; false: they are arrays, or better evaluated where they are read.
  bool change(Comp& n, const std::string& name, Where where) {
    bool fired = false;
    for (size_t c = 0; c < n.lift.size(); ++c) {
      const std::vector<Side> sides = sides_of(g_, n, c);
      if (sides.empty()) continue;
      Product out;
      bool stored = false;
      for (auto& s : sides) {
        std::optional<Id> read;
        if (!array_of(p_, n, s)) read = store(n, s, name, where);
        stored |= bool(read);
        const Product now = read ? Product{{*read}, {}} : s.of;
        out.factors.insert(out.factors.end(), now.factors.begin(), now.factors.end());
        out.divisors.insert(out.divisors.end(), now.divisors.begin(), now.divisors.end());
      }
      if (!stored) continue;
      const expr::Present lift = expr::present(p_, n.lift[c]);
      Dependence depends(p_, n);
      for (Id f : product_of(p_, lift.value).factors)
        if (!depends.of(f)) out.factors.push_back(f);
      const Id value = term_of(p_, out);
      n.lift[c] = lift.when == expr::yes(p_) ? value : p_.make(Op::only, {lift.when, value});
      fired = true;
    }
    return fired;
  }

private:
  // What a block of a contraction gives is never stored.
  bool reads_scores(const Comp& m) const {
    return std::any_of(m.args.begin(), m.args.end(), [&](const Arg& a) {
      const Comp* c = g_[a.from.node].comp();
      return c && c->monoid && is_short_contraction(g_, a.from.node);
    });
  }

  std::optional<Id> store(Comp& n, const Side& s, const std::string& name, Where where) {
    const Id value = term_of(p_, s.of);
    const std::vector<int> axes = axes_as_read(p_, n, s.all, value);
    std::map<int, int> place;
    Comp m;
    Arg read{{0, 0}, {}};
    ir::Out out;
    for (int a : axes) {
      place[a] = int(m.points.size());
      out.axes.push_back(int(m.points.size()));
      m.points.push_back(n.extent(a));
      read.view.push_back(ir::axis(a));
    }
    Import in(p_, n, m, [&](int a) { return ir::axis(place.at(a)); });
    m.lift = {in.body(value)};
    m.outs = {out};
    if (!in.why().empty() || !index_reads(m).empty() || !write_out(m) || reads_scores(m)) return {};
    // As a node its reads and guards stand in the graph's order, by which the terms are then put in theirs.
    m = *g_[g_.add({std::move(m), name, where})].comp();
    m.lift[0] = in_one_order(p_, or_zero(p_, m.lift[0]));
    read.from = {g_.add({std::move(m), name, where}), 0};
    return read_leaf(p_, Type::real, add_read(n, read));
  }

  // Sums of few terms that it reads; conditions on which term it is are decided then, so that what is left
  // does not depend on how the sum was written.
  bool write_out(Comp& m) {
    for (int a = 0; a < int(m.args.size()); ++a) { // what is written out may read another
      const Comp* source = g_[m.args[size_t(a)].from.node].comp();
      const auto terms = source ? written_out(g_, Comp(*source)) : std::nullopt;
      if (!terms) continue;
      const auto body = spliced(p_, *terms, m.args[size_t(a)], m, g_.symbols);
      if (!body) return false;
      m.lift[0] = expr::substitute(p_, m.lift[0],
                                   {{read_leaf(p_, Type::real, a), expr::simplify(p_, *body, {}, true)}});
    }
    return true;
  }

  Graph& g_;
  Pool& p_;
};
} // namespace

Graph stored_operands(const Graph& g) {
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!adds_up(e.to.pool, n)) return {};
    if (!Storer(e.to).change(n, "operand", e.from[id].where)) return {};
    return g.label({id, 0});
  });
  return c.what.empty() ? g : ir::canonical(c.graph).graph;
}

std::set<NodeId> operands(Graph& g) {
  std::set<NodeId> out;
  auto take = [&](const Comp& n, int arg) {
    const NodeId from = n.args[size_t(arg)].from.node;
    if (!g[from].input()) out.insert(from);
  };
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!g[id].comp() || !g[id].comp()->monoid) continue;
    const Comp n = *g[id].comp();
    if (adds_up(g.pool, n)) {
      for (size_t c = 0; c < n.lift.size(); ++c)
        for (auto& s : sides_of(g, n, c))
          if (const auto a = array_of(g.pool, n, s)) take(n, *a);
    } else if (axes_fit(n) && terms_in(g, n.folds) >= fewest_terms) {
      // What an absorbing fold adds up at points of its own stands beside the weight.
      Dependence depends(g.pool, n);
      for (size_t c = 0; c < n.lift.size(); ++c) {
        Side s;
        s.of = product_of(g.pool, expr::present(g.pool, n.lift[c]).value);
        const auto a = array_of(g.pool, n, s);
        const Axes axes = a ? depends.of_arg(*a) : 0;
        if ((axes & own_axes(n, c) & ~common_axes(n)) && (axes & fold_axes(n))) take(n, *a);
      }
    }
  }
  return out;
}

} // namespace tang::rewrite
