#include "tang/grad/pull.hpp"

#include <algorithm>

#include "tang/rewrite/measure.hpp"

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

  struct Pulled {
    Comp n;
    Id when;
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

  // Is some term folded at every point of the domain?
  bool folds_something(const Comp& n, rewrite::Dependence& depends) const {
    const Axes folds = rewrite::fold_axes(n);
    if (n.domain.size() != 1) return n.domain == ir::everywhere();
    for (auto& e : n.folds)
      if (e.range(g.symbols).first < 1) return false;
    for (auto& f : n.domain[0])
      if (depends.of(f) & folds) return false;
    return true;
  }

  // Factors that do not change along the fold axes come out: what stays inside is a plain contraction of the
  // upstream adjoint, shared by all that flows back at this point.
  Port factored(Comp n, Id when) {
    if (n.folds.empty() || !rewrite::axes_fit(n)) return finish(std::move(n), when);
    rewrite::Dependence depends(p, n);
    const Axes folds = rewrite::fold_axes(n);
    if (!folds_something(n, depends) || (depends.of(when) & folds)) return finish(std::move(n), when);
    rewrite::Product inside, outside;
    const rewrite::Product all = rewrite::product_of(p, n.lift[0]);
    for (Id f : all.factors) (depends.of(f) & folds ? inside : outside).factors.push_back(f);
    for (Id f : all.divisors) (depends.of(f) & folds ? inside : outside).divisors.push_back(f);
    const bool same = outside.factors.empty() && outside.divisors.empty();
    bool total = true; // may the inner sum be taken where no term exists?
    for (auto* list : {&inside.factors, &inside.divisors})
      for (Id f : *list)
        for (Id x : expr::subterms(p, f, Op::arg)) total = total && rewrite::is_total(g, n, int(p[x].whole));
    if (same || (!total && when != expr::yes(p))) return finish(std::move(n), when);
    Comp inner = n;
    inner.lift = {rewrite::term_of(p, inside)};
    inner.monoid = sum_monoid(p);
    if (total) inner.domain = ir::everywhere();
    inner.outs = {every_axis(n.points.size())};
    const Port sum{g.add({inner, name + " sum", where}), 0};
    n.folds.clear();
    outside.factors.push_back(read_at(g, n, sum, here(n.points.size())));
    n.lift = {rewrite::term_of(p, outside)};
    return finish(std::move(n), when);
  }
};

} // namespace

Port pull(Graph& g, const Comp& y, int arg, Id term, Id when, const std::string& name, Where where) {
  Puller puller{g, y, y.args[size_t(arg)], name, where};
  Puller::Pulled x = puller.moved(term, when);
  return puller.factored(std::move(x.n), x.when);
}

} // namespace tang::diff
