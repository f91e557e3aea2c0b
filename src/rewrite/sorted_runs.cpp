#include "tang/rewrite/sorted_runs.hpp"

#include <algorithm>

#include "tang/ir/condition.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

std::optional<NodeId> first_of_runs(Graph& g, Port keys, const ir::Extent& c, const ir::Extent& places,
                                    Where where) {
  Pool& p = g.pool;
  const std::vector<ir::Extent> shape = g.shape(keys);
  Comp n;
  n.points.assign(shape.begin(), shape.end() - 1);
  n.points.push_back(places + ir::Extent(1));
  n.folds = {shape.back()};
  const int rank = int(n.points.size());
  std::vector<Form> view = every(size_t(rank));
  view.back() = ir::axis(rank);
  const int u = add_read(n, {keys, view});
  const auto place = as_term(p, ir::axis(rank - 1)), key = as_term(p, ir::uniform(u) + ir::constant(c));
  if (!key) return {};
  n.lift = {p.make(Op::select, {p.make(Op::less, {*key, *place}), p.literal(expr::whole(1)),
                                p.literal(expr::whole(0))})};
  n.monoid = ir::traced(p, ir::sum_of_index());
  ir::Out out;
  for (int a = 0; a < rank; ++a) out.axes.push_back(a);
  n.outs = {out};
  return g.add({std::move(n), "first of runs", where});
}

void bound_run(Comp& n, ir::Conj& at, NodeId first, std::vector<Form> row, const Form& place, int axis) {
  row.push_back(place);
  const int from = add_read(n, {{first, 0}, row});
  row.back() = place + ir::constant(1);
  const int to = add_read(n, {{first, 0}, row});
  insert(at, ir::axis(axis) - ir::uniform(from));
  insert(at, ir::uniform(to) - ir::axis(axis) - ir::constant(1));
}

namespace {
constexpr int64_t most_places = int64_t(1) << 24; // of a place that several axes make

// key + c = place, of a key that is sorted along a fold axis, where `place` is 0 .. places - 1 and made of
// other axes.
struct Run {
  int read, axis;
  Form place;
  ir::Extent c, places;
};

std::optional<Run> run_of(const Graph& g, const Comp& n, const ir::Conj& all, const Form& f) {
  if (f.args.size() != 1 || f.args[0].second != 1 || f.axes.empty() || !f.c.is_constant()) return {};
  if (std::find(all.begin(), all.end(), -1 * f) == all.end()) return {};
  const int key = f.args[0].first;
  const auto a = ir::sorted_along(g, n, key);
  if (!a || size_t(*a) < n.points.size() || f.axis(*a)) return {};
  const Form place = ir::uniform(key) + ir::constant(f.c) - f;
  if (f.axes.size() == 1 && f.axes[0].second == -1)
    return Run{key, *a, place, f.c, n.extent(f.axes[0].first)};
  const auto [lo, hi] = ir::range(place, n.extents(), g.symbols);
  if (hi < lo || hi - lo > most_places) return {};
  return Run{key, *a, place - ir::constant(lo), f.c - ir::Extent(lo), ir::Extent(hi - lo + 1)};
}

// The piece with its runs bounded; nothing where it has none.
std::optional<ir::Conj> with_runs(Edit& e, NodeId id, Comp& n, const ir::Conj& piece) {
  std::vector<Form> gone;
  ir::Conj out;
  for (auto& f : piece)
    if (const auto r = run_of(e.to, n, piece, f)) {
      const Arg key = n.args[size_t(r->read)];
      const auto first = first_of_runs(e.to, key.from, r->c, r->places, e.from[id].where);
      if (!first) continue;
      bound_run(n, out, *first, {key.view.begin(), key.view.end() - 1}, r->place, r->axis);
      gone.push_back(f), gone.push_back(-1 * f);
    }
  if (gone.empty()) return {};
  for (auto& f : piece)
    if (std::find(gone.begin(), gone.end(), f) == gone.end()) insert(out, f);
  return out;
}

std::optional<std::string> runs_in(Edit& e, NodeId id, Comp& n) {
  bool any = false;
  ir::Domain domain;
  for (auto& piece : n.domain) {
    auto next = with_runs(e, id, n, piece);
    any |= bool(next);
    domain.push_back(next ? std::move(*next) : piece);
  }
  if (!any) return {};
  n.domain = ir::normal(std::move(domain));
  return e.from.label({id, 0});
}

Result<Rewritten> apply_sorted_runs(const Graph& g) {
  const auto is_key = [](const Node& n) { return n.input() && n.input()->sorted; };
  if (std::none_of(g.nodes.begin(), g.nodes.end(), is_key))
    return Refusal{"no key is declared sorted"};
  Changed c = change_each(g, runs_in);
  if (c.what.empty()) return Refusal{"no term's presence is that a sorted key equals an axis"};
  return Rewritten{std::move(c.graph), std::move(c.what)};
}

Graph sorted_runs_witness() {
  ir::Builder b;
  const auto key = set_sorted(b.input("key", {9}, ir::Format::i32)), x = b.input("x", {9, 3});
  auto [t, c] = ir::axes<"t c">();
  const ir::Axis place = ir::axis("place", ir::Extent(4));
  b.output(ir::map({place, c}, sum(t, masked(ir::Index(place) == ir::Index(key(t)), x(t, c)))), "y");
  return b.graph();
}
} // namespace

Rule sorted_runs() {
  return {"sorted_runs",
          {"sorted keys equal to x lie between how many are smaller than x and than x + 1",
           "segment_sound", Law::exact},
          apply_sorted_runs,
          sorted_runs_witness};
}

} // namespace tang::rewrite
