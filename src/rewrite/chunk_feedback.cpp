// A sum of the old state that is fed back, S' = g S + w r + c with r = sum z S + y (a delta rule): inside a
// chunk the r are a unit lower triangular system, r_i = rhs_i + sum_(j < i) K(i, j) r_j with K(i, j) = sum
// z_i D(i, j) w_j. It is solved row after row for all chunks side by side, by substitution (never by squaring
// the matrix: that loses all digits where keys resemble each other), once for what the chunk adds and once
// for what multiplies the state that it starts from.
#include <algorithm>

#include "tang/rewrite/chunk_state.hpp"
#include "tang/rewrite/terms.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

using ir::Extent;
using Shape = Chunks::Shape;

// An axis of the correction's sum: dimensions of the state that it folds, and those of r that are kept, lie
// at these axes; others are not mentioned.
std::function<Form(int)> ChunkState::axes_of_sum(const Feedback& f, int folded_at, int kept_at) const {
  std::map<int, Form> at;
  for (size_t k = 0; k < f.folded.size(); ++k)
    at[a.correction->axis[size_t(f.folded[k])]] = ir::axis(folded_at + int(k));
  for (size_t k = 0; k < f.kept.size(); ++k)
    at[a.correction->axis[size_t(f.kept[k])]] = ir::axis(kept_at + int(k));
  return [at](int axis) {
    const auto it = at.find(axis);
    return it == at.end() ? ir::constant(0) : it->second;
  };
}

void ChunkState::find_axes(Feedback& f) const {
  const AffineStep::Correction& c = *a.correction;
  const Pool& p = c_.over.step().pool;
  const Axes of_factor = Dependence(p, c.sum).of(c.factor), of_weight = Dependence(p, a.next).of(c.weight);
  for (int d = 0; d < int(dims.size()); ++d) {
    const bool decays = std::count(a.axes.begin(), a.axes.end(), d) > 0;
    const bool pushed = decays || (of_weight & bit(d)),
               in_r = std::count(c.dims.begin(), c.dims.end(), d) > 0;
    if (pushed) f.pushed_dims.push_back(d);
    if (!in_r)
      f.folded.push_back(d);
    else if (pushed || (of_factor & bit(c.axis[size_t(d)])))
      f.kept.push_back(d);
  }
}

// K(i, j), and what the end of the chunk has of each row.
void ChunkState::make_products(Feedback& f) const {
  const AffineStep::Correction& c = *a.correction;
  Graph& to = c_.to();
  const int kept = 3, folded = kept + int(f.kept.size());
  MapOf m(to, c_.over.shape(with_front(Extent(c_.block), of_dims(f.kept))));
  const auto axes = axes_of_sum(f, folded, kept);
  const auto dim = [&](int d) { return axes(c.axis[size_t(d)]); };
  std::vector<Form> at;
  for (int d = 0; d < int(dims.size()); ++d) at.push_back(dim(d));
  const Form n = ir::axis(0), i = ir::axis(1), j = ir::axis(2);
  m.n.domain = c_.until(i, j, 0);
  OverTime::Moved read(c_.over, c.sum, m.n, {n, i}, axes), written(c_.over, a.next, m.n, {n, j}, dim);
  const Id decay = m.at(decays_[0], both({n, i, j}, along(at)));
  const Id of_row = to.pool.make(Op::mul, {decay, written.body(c.weight)});
  f.products = m.add_sum(of_dims(f.folded), to.pool.make(Op::mul, {read.body(c.factor), of_row}), "products");

  MapOf e(to, c_.over.shape(of_dims(f.pushed_dims)));
  const auto place = [&](int d) {
    return ir::axis(2 +
                    int(std::find(f.pushed_dims.begin(), f.pushed_dims.end(), d) - f.pushed_dims.begin()));
  };
  std::vector<Form> where;
  for (int d = 0; d < int(dims.size()); ++d) where.push_back(place(d));
  OverTime::Moved last(c_.over, a.next, e.n, {n, ir::axis(1)}, place);
  const Id rest = e.at(decays_[1], both({n, ir::constant(c_.last()), ir::axis(1)}, along(where)));
  f.pushed = e.add(to.pool.make(Op::mul, {rest, last.body(c.weight)}), "pushed");
}

// What r has of y and of what the chunk added before.
Port ChunkState::given_rows() const {
  const AffineStep::Correction& c = *a.correction;
  const Pool& p = c_.over.step().pool;
  std::vector<Port> parts;
  if (!is_zero(p, c.rest)) parts.push_back(c_.sum(c.sum, c.rest, {}, "given"));
  if (!is_zero(p, a.rest) || parts.empty())
    parts.push_back(c_.sum(
        c.sum, c.factor,
        [&](MapOf& m, OverTime::Moved&) {
          std::vector<Form> at;
          for (int axis : c.axis) at.push_back(ir::axis(2 + axis));
          return made(0, m, at);
        },
        "given"));
  return c_.added(parts, "given");
}

// What r has of each place of the state that the chunk starts from.
Port ChunkState::given_weights(const Feedback& f) const {
  const AffineStep::Correction& c = *a.correction;
  Shape local = of_dims(f.folded);
  for (const Extent& e : of_dims(f.kept)) local.push_back(e);
  MapOf m(c_.to(), c_.over.shape(local));
  const auto axes = axes_of_sum(f, 2, 2 + int(f.folded.size()));
  std::vector<Form> at;
  for (int d = 0; d < int(dims.size()); ++d) at.push_back(axes(c.axis[size_t(d)]));
  OverTime::Moved moved(c_.over, c.sum, m.n, {ir::axis(0), ir::axis(1)}, axes);
  const Id decay = m.at(decay_[0], both({ir::axis(0), ir::axis(1)}, along(at)));
  return m.add(c_.to().pool.make(Op::mul, {moved.body(c.factor), decay}), "given weights");
}

namespace {
// rows(i) = given(i) + sum_j K(i, j) rows(j): a state of a recurrence over i that holds all rows. `kept`:
// where in a row the axes of K lie.
void solve_by_rows(Loop& loop, const Shape& row, Port products, const std::vector<int>& kept, Port given,
                   Port rows) {
  Shape lines = row;
  lines.insert(lines.begin() + 1, loop.step.shape(rows)[1]);
  const int j = int(row.size());
  std::vector<Form> of_products{ir::axis(0), ir::axis(j)}, of_rows = every(row.size());
  for (int k : kept) of_products.push_back(ir::axis(1 + k));
  of_rows.insert(of_rows.begin() + 1, ir::axis(j));
  Pool& p = loop.step.pool;
  MapOf s(loop.step, row), m(loop.step, lines);
  const Id term = p.make(Op::mul, {s.at(products, of_products), s.at(rows, of_rows)});
  const Port sum = s.add_sum({lines[1]}, term, "earlier rows");
  std::vector<Form> here = every(lines.size()), in_row = here;
  in_row.erase(in_row.begin() + 1);
  const Id now = p.make(Op::equal, {m.coordinate(1), m.at(loop.time(), {})});
  const Id solved = p.make(Op::add, {m.at(given, in_row), m.at(sum, in_row)});
  loop.next(m.add(p.make(Op::select, {now, solved, m.at(rows, here)}), "rows"));
}
} // namespace

void ChunkState::solve_rows(Feedback& f) const {
  const AffineStep::Correction& c = *a.correction;
  const Shape row = c_.side_by_side(of_dims(c.dims));
  Shape weights = of_dims(f.folded);
  for (const Extent& e : of_dims(f.kept)) weights.push_back(e);
  weights = c_.side_by_side(weights);
  const auto lines = [&](Shape s) {
    s.insert(s.begin() + 1, Extent(c_.block));
    return s;
  };
  const Port given = given_rows(), given_w = given_weights(f);
  Loop loop(Extent(c_.block), c_.r.reverse, c_.clock(), c_.to().symbols);
  const Port rows = loop.state("rows", lines(row)), w = loop.state("weights", lines(weights));
  const size_t kept = f.kept.size();
  const Port products = loop.arg("products", c_.side_by_side(with_front(Extent(c_.block), of_dims(f.kept))),
                                 f.products, Chunks::beside(kept + 1));
  const Port of_rows = loop.arg("given", row, given, Chunks::beside(row.size() - 1));
  const Port of_w = loop.arg("given weights", weights, given_w, Chunks::beside(weights.size() - 1));
  std::vector<int> in_row, in_w;
  for (size_t k = 0; k < kept; ++k) {
    in_row.push_back(int(std::find(c.dims.begin(), c.dims.end(), f.kept[k]) - c.dims.begin()));
    in_w.push_back(int(f.folded.size() + k));
  }
  solve_by_rows(loop, row, products, in_row, of_rows, rows);
  solve_by_rows(loop, weights, products, in_w, of_w, w);
  const NodeId id = loop.add_to(c_.to(), c_.like);
  f.rows = {id, 0}, f.weights = {id, 1};
}

// From chunk to chunk, with the rows of each from what it starts from.
Port ChunkState::ends_with_feedback(std::optional<Port> init) {
  const AffineStep::Correction& c = *a.correction;
  Feedback f;
  find_axes(f);
  make_products(f);
  solve_rows(f);
  Loop loop(Extent(c_.count), c_.r.reverse, c_.clock(), c_.to().symbols);
  const auto arg = [&](const char* name, Port from) {
    Shape local = c_.to().shape(from);
    local.erase(local.begin());
    return loop.arg(name, local, from, every(local.size() + 1));
  };
  const Port state = loop.state("start", dims, init);
  const Port e = arg("decay", end_decay_), l = arg("local", end_), rows = arg("rows", f.rows);
  const Port w = arg("weights", f.weights), pushed = arg("pushed", f.pushed);
  Pool& p = loop.step.pool;

  const Shape row = with_front(Extent(c_.block), of_dims(c.dims));
  MapOf s(loop.step, row), r(loop.step, row);
  std::vector<Form> at(dims.size(), ir::constant(0)), of_w{ir::axis(0)};
  for (size_t k = 0; k < c.dims.size(); ++k) at[size_t(c.dims[k])] = ir::axis(1 + int(k));
  for (size_t k = 0; k < f.folded.size(); ++k) at[size_t(f.folded[k])] = ir::axis(int(row.size() + k));
  for (const auto* some : {&f.folded, &f.kept})
    for (int d : *some) of_w.push_back(at[size_t(d)]);
  const Port seen = s.add_sum(of_dims(f.folded), p.make(Op::mul, {s.at(w, of_w), s.at(state, at)}), "seen");
  const auto in_row = every(row.size());
  const Port all = r.add(p.make(Op::add, {r.at(rows, in_row), r.at(seen, in_row)}), "rows");

  MapOf u(loop.step, dims), m(loop.step, dims);
  const Form j = ir::axis(int(dims.size()));
  std::vector<Form> of_pushed{j}, of_row{j};
  for (int d : f.pushed_dims) of_pushed.push_back(ir::axis(d));
  for (int d : c.dims) of_row.push_back(ir::axis(d));
  const Port fed =
      u.add_sum({Extent(c_.block)}, p.make(Op::mul, {u.at(pushed, of_pushed), u.at(all, of_row)}), "fed");
  const auto here = every(dims.size());
  const Id kept = p.make(Op::mul, {m.at(e, along(here)), m.at(state, here)});
  const Id next = p.make(Op::add, {kept, p.make(Op::add, {m.at(l, here), m.at(fed, here)})});
  loop.next(m.add(next, "next"));
  loop.emit(state, every(dims.size() + 1), c_.side_by_side(dims));
  loop.emit(all, every(row.size() + 1), c_.side_by_side(row));
  const NodeId id = loop.add_to(c_.to(), c_.like);
  start_ = {id, 1};
  fed_back = Port{id, 2};
  return {id, 0};
}

} // namespace tang::rewrite
