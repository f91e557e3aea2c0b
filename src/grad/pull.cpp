#include "tang/grad/pull.hpp"

#include <algorithm>
#include <tuple>

#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/sorted_runs.hpp"

namespace tang::diff {

using rewrite::Axes;
using rewrite::Import;

namespace {

struct Puller {
  Graph& g;
  const Comp& y;
  const ir::Arg read; // by value: y's reads may be those of a growing node
  const std::string& name;
  Where where;
  Pool& p = g.pool;
  std::vector<Extent> shape = g.shape(read.from);
  int rank = int(shape.size());
  // Forms here: axis q < rank is the source's coordinate q, axis rank + a is y's axis a; reads are y's.
  std::map<int, Form> solved = {}; // y's axis -> form
  std::vector<char> done = std::vector<char>(size_t(rank), 0);
  std::map<int, std::vector<std::pair<int, int64_t>>> spread =
      {}; // coordinate -> y's axes that fill it, outer first

  Form lifted(const Form& f) const {
    return ir::compose(f, [&](int a) {
      auto it = solved.find(a);
      return it == solved.end() ? ir::axis(rank + a) : it->second;
    });
  }

  // The axes of y that a form depends on, through its reads and what is solved.
  void depends(const Form& f, std::set<int>& out) const {
    for (auto& [a, k] : f.axes)
      if (a >= rank) out.insert(a - rank);
    for (auto& [u, k] : f.args)
      for (auto& v : y.args[size_t(u)].view) depends(lifted(v), out);
  }

  bool reads_use(const Form& f, int a) const {
    std::set<int> axes;
    for (auto& [u, k] : f.args)
      for (auto& v : y.args[size_t(u)].view) depends(lifted(v), axes);
    return axes.count(a);
  }

  void solve(int q, int a, int64_t k) {
    const Form f = lifted(read.view[size_t(q)]), x = k * (ir::axis(q) - (f - ir::axis(rank + a, k)));
    for (auto& s : solved)
      s.second = ir::compose(s.second, [&](int b) { return b == rank + a ? x : ir::axis(b); });
    solved[a] = x;
    done[size_t(q)] = 1;
  }

  // The longest axis with a unit coefficient: what stays a fold is then short.
  bool solve_one(bool picks) {
    int best_q = -1, best_a = -1;
    double longest = -1;
    for (int q = 0; q < rank; ++q) {
      if (done[size_t(q)]) continue;
      const Form f = lifted(read.view[size_t(q)]);
      if (picks && !f.is_pick()) continue;
      for (auto& [a, k] : f.axes) {
        if (a < rank || (k != 1 && k != -1) || reads_use(f, a - rank)) continue;
        const double size = rewrite::nominal_size({y.extent(a - rank)}, g.symbols);
        if (size > longest) {
          longest = size;
          best_q = q;
          best_a = a - rank;
        }
      }
    }
    if (best_q < 0) return false;
    solve(best_q, best_a, lifted(read.view[size_t(best_q)]).axis(rank + best_a));
    return true;
  }

  // A coordinate that several axes fill exactly, in mixed radix (head and feature, group and channel): the
  // axes stay the result's points, and its output view puts them together again.
  void spread_axes() {
    std::set<int> taken;
    for (int q = 0; q < rank; ++q) {
      const Form f = lifted(read.view[size_t(q)]);
      if (done[size_t(q)] || f.axes.size() < 2 || !f.args.empty() || !(f.c == Extent(0))) continue;
      std::vector<std::pair<int64_t, int>> terms;
      for (auto& [a, k] : f.axes) // an axis of one value does not move it: it is folded
        if (a < rank || !(y.extent(a - rank) == Extent(1))) terms.push_back({k, a - rank});
      std::sort(terms.begin(), terms.end());
      int64_t span = 1;
      bool exact = true;
      for (auto& [k, a] : terms) {
        exact = exact && a >= 0 && k == span && y.extent(a).is_constant() && !taken.count(a);
        if (exact) span *= y.extent(a).value();
      }
      if (!exact || !(shape[size_t(q)] == Extent(span))) continue;
      for (auto& [k, a] : terms) {
        taken.insert(a);
        spread[q].insert(spread[q].begin(), {a, k});
      }
      done[size_t(q)] = 1;
    }
  }

  // Coordinate q is `c` more than a key that is sorted along an axis of y: the terms of one place lie side by
  // side.
  struct Key {
    int of, axis, read; // the coordinate; the axis of y; the key among y's reads
    Extent c;
  };

  std::optional<Key> sorted_key(int q) const {
    const Form f = lifted(read.view[size_t(q)]);
    if (!f.axes.empty() || f.args.size() != 1 || f.args[0].second != 1) return {};
    const ir::Arg& key = y.args[size_t(f.args[0].first)];
    const ir::Input* in = g[key.from.node].input();
    if (!in || !in->sorted) return {};
    const Form along = lifted(key.view.back());
    if (!along.is_pick() || along.picked() < rank) return {};
    const int a = along.picked() - rank;
    for (auto& other : key.view) {
      std::set<int> axes;
      if (&other != &key.view.back()) depends(lifted(other), axes);
      if (axes.count(a)) return {};
    }
    return Key{q, a, f.args[0].first, f.c};
  }

  void run_of_key(const Key& k, const Form& coordinate, int axis,
                  const std::function<Form(const Form&)>& settled, Comp& n, ir::Conj& at) {
    const ir::Arg key = y.args[size_t(k.read)];
    const auto first = rewrite::first_of_runs(g, key.from, k.c, shape[size_t(k.of)], where);
    if (!first) throw Refused{name + ": a key with a symbolic offset"};
    std::vector<Form> row;
    for (size_t d = 0; d + 1 < key.view.size(); ++d) row.push_back(settled(lifted(key.view[d])));
    rewrite::bound_run(n, at, *first, row, coordinate, axis);
  }

  struct Pulled {
    Comp n;
    Id when;
    ir::Arg read = {}; // the read that is pulled back along, over n
  };

  Pulled moved(Id term, Id when) {
    while (solve_one(true)) {}
    spread_axes();
    while (solve_one(false)) {}
    Comp n;
    std::map<int, int> place;    // y's axis -> axis of n
    std::vector<int> coordinate; // the point that is coordinate q, or -1
    ir::Out out;
    for (int q = 0; q < rank; ++q) {
      Form at = ir::axis(int(n.points.size()));
      coordinate.push_back(spread.count(q) ? -1 : int(n.points.size()));
      if (auto it = spread.find(q); it != spread.end()) {
        at = {};
        for (auto& [a, k] : it->second) {
          place[a] = int(n.points.size());
          at = at + ir::axis(place[a], k);
          n.points.push_back(y.extent(a));
        }
      } else {
        n.points.push_back(shape[size_t(q)]);
      }
      out.view.push_back(at);
    }
    for (size_t a = 0; a < n.points.size(); ++a) out.axes.push_back(int(a));
    if (spread.empty())
      out.view.clear();
    else
      out.shape = shape;
    for (int a = 0; a < y.axis_count(); ++a)
      if (!solved.count(a) && !place.count(a)) {
        place[a] = int(n.points.size() + n.folds.size());
        n.folds.push_back(y.extent(a));
      }
    Import* import = nullptr;
    const std::function<Form(const Form&)> settled = [&](const Form& f) {
      return ir::compose(
          f, [&](int a) { return ir::axis(a < rank ? coordinate[size_t(a)] : place.at(a - rank)); },
          [&](int u) { return ir::uniform(import->take(u)); });
    };
    Import in(p, y, n, [&](int a) {
      auto it = solved.find(a);
      return it == solved.end() ? ir::axis(place.at(a)) : settled(it->second);
    });
    import = &in;
    ir::Conj at;
    for (int q = 0; q < rank; ++q)
      if (const auto key = done[size_t(q)] ? std::nullopt : sorted_key(q)) {
        run_of_key(*key, ir::axis(coordinate[size_t(q)]), place.at(key->axis), settled, n, at);
        done[size_t(q)] = 1;
      }
    for (auto& [a, f] : solved) {
      const Form x = settled(f);
      insert(at, x);
      insert(at, ir::constant(y.extent(a) - Extent(1)) - x);
    }
    for (int q = 0; q < rank; ++q)
      if (!done[size_t(q)]) {
        const Form gap = settled(lifted(read.view[size_t(q)])) - ir::axis(coordinate[size_t(q)]);
        insert(at, gap);
        insert(at, -1 * gap);
      }
    const Domain all = ir::intersection({at}, in.domain(y.domain));
    n.domain = ir::pruned(all, n.extents(), g.symbols);
    n.lift = {in.body(term)};
    const Id condition = in.body(when);
    if (!in.why().empty()) throw Refused{name + ": " + in.why()};
    n.outs = {out};
    return {std::move(n), condition};
  }

  Id under(Id when, Id term) { return when == expr::yes(p) ? term : p.make(Op::only, {when, term}); }

  // Does a map of these points exist wherever the source does, and only there?
  bool exists_with_source(const Comp& n) {
    if (n.domain == ir::everywhere()) return true;
    if (!spread.empty()) return false;
    const Comp* source = g[read.from.node].comp();
    if (!source || !source->is_map() || !source->outs[0].view.empty()) return false;
    Comp trial = n;
    std::map<int, int> coordinate;
    for (size_t d = 0; d < source->outs[0].axes.size(); ++d) coordinate[source->outs[0].axes[d]] = int(d);
    Import in(p, *source, trial, [&](int a) { return ir::axis(coordinate.at(a)); });
    return ir::implies(ir::pruned(in.domain(source->domain), n.extents(), g.symbols), n.domain);
  }

  Port finish(Comp n, Id when) {
    n.lift[0] = under(when, n.lift[0]);
    if (!n.folds.empty() || !exists_with_source(n))
      n.monoid = sum_monoid(p);
    else if (when != expr::yes(p))
      n.lift[0] = p.make(Op::or_else, {n.lift[0], p.literal(0.0)});
    return {g.add({std::move(n), name, where}), 0};
  }

  // Is some term along these axes folded at every point of the domain? (A factor that is no number, times an
  // empty sum, would not be 0.)
  bool folds_something(const Comp& n, rewrite::Dependence& depends, Axes over) const {
    for (int a = 0; a < n.axis_count(); ++a)
      if ((over & rewrite::bit(a)) && n.extent(a).range(g.symbols).first < 1) return false;
    for (auto& piece : n.domain)
      for (auto& f : piece)
        if (depends.of(f) & over) return false;
    return true;
  }

  // The other axes of what these factors read, in an order that is the same wherever they are multiplied:
  // equal sums are one node.
  std::vector<int> axes_of(const Comp& n, const rewrite::Product& factors, Axes over) {
    std::vector<int> reads, out;
    for (auto* list : {&factors.factors, &factors.divisors})
      for (Id f : *list)
        for (Id x : expr::subterms(p, f, Op::arg)) reads.push_back(int(p[x].whole));
    std::sort(reads.begin(), reads.end(), [&](int a, int b) {
      const Port x = n.args[size_t(a)].from, y = n.args[size_t(b)].from;
      return std::tuple(g[x.node].hash, x.port, a) < std::tuple(g[y.node].hash, y.port, b);
    });
    rewrite::Dependence depends(p, n);
    Axes seen = over;
    auto take = [&](Axes axes) {
      for (int a = 0; a < n.axis_count(); ++a)
        if (axes & ~seen & rewrite::bit(a)) seen |= rewrite::bit(a), out.push_back(a);
    };
    for (int r : reads)
      for (auto& f : n.args[size_t(r)].view) take(depends.of(f));
    for (auto* list : {&factors.factors, &factors.divisors})
      for (Id f : *list) take(depends.of(f));
    return out;
  }

  // Factors that do not change along the axes `over` come out: what stays inside is a plain contraction of
  // the upstream adjoint, shared by all that flows back at this point. `whole`: they are all that n folds.
  std::optional<Pulled> factored(const Comp& n, Id when, Axes over, bool whole) {
    rewrite::Dependence depends(p, n);
    if (!folds_something(n, depends, over) || (depends.of(when) & over)) return {};
    rewrite::Product inside, outside;
    const rewrite::Product all = rewrite::product_of(p, n.lift[0]);
    for (Id f : all.factors) (depends.of(f) & over ? inside : outside).factors.push_back(f);
    for (Id f : all.divisors) (depends.of(f) & over ? inside : outside).divisors.push_back(f);
    const bool same = outside.factors.empty() && outside.divisors.empty();
    bool total = true; // may the inner sum be taken where no term exists?
    for (auto* list : {&inside.factors, &inside.divisors})
      for (Id f : *list)
        for (Id x : expr::subterms(p, f, Op::arg)) total = total && rewrite::is_total(g, n, int(p[x].whole));
    const bool masked = n.domain != ir::everywhere() || when != expr::yes(p);
    if (!total && (when != expr::yes(p) || !whole)) return {};
    if (same && !(whole && masked && total)) return {};
    std::vector<int> points = axes_of(n, inside, over);
    if (!total)
      for (int a = 0; a < n.axis_count(); ++a)
        if ((depends.of(n.domain) & ~over & rewrite::bit(a)) &&
            std::find(points.begin(), points.end(), a) == points.end())
          points.push_back(a);
    const auto sum = summed(n, inside, points, over, total ? ir::everywhere() : n.domain);
    // What is stored is folded where it exists only, and at once; what each tile evaluates for itself is a
    // plain contraction.
    if (!sum || ((same || !whole) && !rewrite::is_short_contraction(g, sum->node))) return {};
    return around(n, when, outside, *sum, points, over, whole);
  }

  std::optional<Port> summed(const Comp& n, const rewrite::Product& inside, const std::vector<int>& points,
                             Axes over, const Domain& domain) {
    Comp inner;
    std::map<int, int> place;
    for (int a : points) {
      place[a] = int(inner.points.size());
      inner.points.push_back(n.extent(a));
    }
    for (int a = 0; a < n.axis_count(); ++a)
      if (over & rewrite::bit(a)) {
        place[a] = int(inner.points.size() + inner.folds.size());
        inner.folds.push_back(n.extent(a));
      }
    Import in(p, n, inner, [&](int a) { return ir::axis(place.at(a)); });
    inner.lift = {in.body(rewrite::term_of(p, inside))};
    if (domain != ir::everywhere()) inner.domain = in.domain(domain);
    inner.monoid = sum_monoid(p);
    inner.outs = {every_axis(points.size())};
    if (!in.why().empty()) return {};
    return Port{g.add({inner, name + " sum", where}), 0};
  }

  // The fold over the axes that are left, of the other factors and a read of the inner sum.
  std::optional<Pulled> around(const Comp& n, Id when, const rewrite::Product& outside, Port sum,
                               const std::vector<int>& points, Axes over, bool whole) {
    Comp out;
    std::map<int, int> place;
    for (int a = 0; a < n.axis_count(); ++a) {
      if (over & rewrite::bit(a)) continue;
      place[a] = int(place.size());
      (size_t(a) < n.points.size() ? out.points : out.folds).push_back(n.extent(a));
    }
    Import in(p, n, out, [&](int a) { return ir::axis(place.at(a)); });
    rewrite::Product lift;
    for (Id f : outside.factors) lift.factors.push_back(in.body(f));
    for (Id f : outside.divisors) lift.divisors.push_back(in.body(f));
    std::vector<Form> view;
    for (int a : points) view.push_back(ir::axis(place.at(a)));
    lift.factors.push_back(read_at(g, out, sum, view));
    out.lift = {rewrite::term_of(p, lift)};
    out.domain = in.domain(n.domain);
    out.outs = n.outs;
    const Id condition = in.body(when);
    ir::Arg pulled{read.from, {}};
    if (!whole)
      for (auto& f : read.view) pulled.view.push_back(in.form(f));
    if (!in.why().empty()) return {};
    return Pulled{std::move(out), condition, std::move(pulled)};
  }

  Port factored(Comp n, Id when) {
    if (!n.folds.empty() && rewrite::axes_fit(n))
      if (auto x = factored(n, when, rewrite::fold_axes(n), true)) return finish(std::move(x->n), x->when);
    return finish(std::move(n), when);
  }

  // y without one of the axes that the read leaves alone: its products along it are summed first, as every
  // other read of y has them. (A bias that is read at a row and a key takes the same product over features as
  // the score does.)
  std::optional<Pulled> contracted(Id when) {
    if (!rewrite::axes_fit(y)) return {};
    rewrite::Dependence depends(p, y);
    Axes used = 0;
    for (auto& f : read.view) used |= depends.of(f);
    for (int a = 0; a < y.axis_count(); ++a)
      if (!(used & rewrite::bit(a)))
        if (auto x = factored(y, when, rewrite::bit(a), false)) return x;
    return {};
  }
};

} // namespace

Port pull(Graph& g, const Comp& y, int arg, Id term, Id when, const std::string& name, Where where) {
  Comp n = y;
  n.lift = {term};
  ir::Arg read = y.args[size_t(arg)];
  while (auto x = Puller{g, n, read, name, where}.contracted(when)) {
    n = std::move(x->n);
    read = std::move(x->read);
    when = x->when;
  }
  Puller puller{g, n, read, name, where};
  Puller::Pulled x = puller.moved(n.lift[0], when);
  return puller.factored(std::move(x.n), x.when);
}

} // namespace tang::diff
