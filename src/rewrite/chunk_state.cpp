#include "tang/rewrite/chunk_state.hpp"

#include <algorithm>

#include "tang/rewrite/import.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/terms.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

using ir::Extent;
using Shape = Chunks::Shape;

Shape Chunks::side_by_side(const Shape& local) const { return with_front(Extent(count), local); }

std::vector<Form> Chunks::beside(size_t local) { return both({ir::axis(1), ir::axis(0)}, every(local, 2)); }

Domain Chunks::until(const Form& i, const Form& j, int after) const {
  return {{(r.reverse ? -1 : 1) * (i - j) + ir::constant(after ? 0 : -1)}};
}

Port Chunks::sum(const Comp& n, Id factor, const Of& of, const std::string& name) const {
  MapOf m(to(), over.shape(n.points));
  OverTime::Moved moved(over, n, m.n, {ir::axis(0), ir::axis(1)}, [](int a) { return ir::axis(a + 2); });
  m.n.domain = moved.domain(n.domain);
  m.n.outs[0].axes = {0, 1};
  for (int a : n.outs[0].axes) m.n.outs[0].axes.push_back(a + 2);
  Id value = moved.body(factor);
  if (of) value = to().pool.make(Op::mul, {value, of(m, moved)});
  return m.add_sum(n.folds, value, name);
}

Port Chunks::added(const std::vector<Port>& parts, const std::string& name) const {
  MapOf m(to(), to().shape(parts[0]));
  const auto here = every(m.n.points.size());
  Id total = m.at(parts[0], here);
  for (size_t k = 1; k < parts.size(); ++k) total = to().pool.make(Op::add, {total, m.at(parts[k], here)});
  return m.add(total, name);
}

namespace {
// Decays of every step by every later one are no more than the states.
bool fits_sums(const Chunks& c, const AffineStep& a) {
  Shape along;
  for (int d : a.axes) along.push_back(a.next.points[size_t(d)]);
  const ir::Symbols& symbols = c.to().symbols;
  return a.correction ||
         double(c.block) * nominal_size(along, symbols) <= nominal_size(a.next.points, symbols);
}
} // namespace

ChunkState::ChunkState(const Chunks& c, AffineStep step)
    : a(std::move(step)), dims(a.next.points), sums(fits_sums(c, a)), c_(c) {}

std::vector<Form> ChunkState::along(const std::vector<Form>& at) const {
  std::vector<Form> out;
  for (int d : a.axes) out.push_back(at[size_t(d)]);
  return out;
}

Shape ChunkState::of_dims(const std::vector<int>& some) const {
  Shape out;
  for (int d : some) out.push_back(dims[size_t(d)]);
  return out;
}

Port ChunkState::solve(std::optional<Port> init) {
  factor_ = over_chunks(a.factor, a.axes, "factor");
  if (!sums) {
    scan();
    return ends(init);
  }
  decay_products();
  from_start();
  const bool feeds = a.correction.has_value();
  end_ = summed(1, true);
  if (feeds) local_[0] = summed(0, false);
  const Port end = feeds ? ends_with_feedback(init) : ends(init);
  for (int after : {0, 1}) local_[after] = summed(after, false);
  return end;
}

// A term of the next state at every time: [chunk, step, those dimensions of the state].
Port ChunkState::over_chunks(Id term, const std::vector<int>& some, const char* name) {
  MapOf m(c_.to(), c_.over.shape(of_dims(some)));
  OverTime::Moved moved(c_.over, a.next, m.n, {ir::axis(0), ir::axis(1)}, [&](int d) {
    return ir::axis(2 + int(std::find(some.begin(), some.end(), d) - some.begin()));
  });
  return m.add(moved.body(term), name);
}

// Decays of each step by the later ones of its chunk, one product a step.
void ChunkState::decay_products() {
  const size_t n = along().size();
  const Shape lines = c_.side_by_side(with_front(Extent(c_.block), along()));
  Loop loop(Extent(c_.block), c_.r.reverse, c_.clock(), c_.to().symbols);
  const Port old = loop.state("decays", lines);
  const Port g = loop.arg("factor", c_.side_by_side(along()), factor_, Chunks::beside(n));
  MapOf m(loop.step, lines);
  Pool& p = loop.step.pool;
  const Id now = p.make(Op::equal, {m.coordinate(1), m.at(loop.time(), {})});
  const Id later = p.make(Op::mul, {m.at(g, both({ir::axis(0)}, every(n, 2))), m.at(old, every(n + 2))});
  const Port next = m.add(p.make(Op::select, {now, p.literal(1.0), later}), "decays");
  loop.next(next);
  for (Port x : {old, next})
    loop.emit(x, Chunks::beside(n + 1), c_.over.shape(with_front(Extent(c_.block), along())));
  const NodeId id = loop.add_to(c_.to(), c_.like);
  decays_[0] = {id, 1}, decays_[1] = {id, 2};
}

// What is left of a chunk's start: its decay by all steps up to i.
void ChunkState::from_start() {
  Graph& to = c_.to();
  const auto decayed = [&](MapOf& m, int after, const Form& i, int lead) {
    const auto local = every(along().size(), lead);
    const Form n = ir::axis(0), start = ir::constant(c_.first());
    return to.pool.make(
        Op::mul, {m.at(decays_[after], both({n, i, start}, local)), m.at(factor_, both({n, start}, local))});
  };
  MapOf before(to, c_.over.shape(along())), after = before, end(to, c_.side_by_side(along()));
  const Id first = to.pool.literal(expr::whole(c_.first()));
  const Id at_start = to.pool.make(Op::equal, {before.coordinate(1), first}), one = to.pool.literal(1.0);
  decay_[0] =
      before.add(to.pool.make(Op::select, {at_start, one, decayed(before, 0, ir::axis(1), 2)}), "decay");
  decay_[1] = after.add(decayed(after, 1, ir::axis(1), 2), "decay");
  end_decay_ = end.add(decayed(end, 1, ir::constant(c_.last()), 1), "decay");
}

// What the chunk's own steps made of the state: up to step i, or at the end of the chunk.
Port ChunkState::summed(int after, bool at_end) {
  Graph& to = c_.to();
  const int lead = at_end ? 1 : 2, j = lead + int(dims.size());
  MapOf m(to, at_end ? c_.side_by_side(dims) : c_.over.shape(dims));
  const Form i = at_end ? ir::constant(c_.last()) : ir::axis(1);
  if (!at_end) m.n.domain = c_.until(i, ir::axis(j), after);
  OverTime::Moved moved(c_.over, a.next, m.n, {ir::axis(0), ir::axis(j)},
                        [lead](int d) { return ir::axis(lead + d); });
  Id value = moved.body(a.rest);
  if (fed_back) {
    std::vector<Form> row{ir::axis(0), ir::axis(j)};
    for (int d : a.correction->dims) row.push_back(ir::axis(lead + d));
    const Id fed = to.pool.make(Op::mul, {moved.body(a.correction->weight), m.at(*fed_back, row)});
    value = is_zero(to.pool, value) ? fed : to.pool.make(Op::add, {value, fed});
  }
  const auto place = both({ir::axis(0), i, ir::axis(j)}, along(every(dims.size(), lead)));
  const Id decay = m.at(decays_[after], place);
  return m.add_sum({Extent(c_.block)}, to.pool.make(Op::mul, {decay, value}), c_.like.name + " in a chunk");
}

// The recurrence itself from nothing, and the decay of what it started from, all chunks side by side.
void ChunkState::scan() {
  Graph& to = c_.to();
  std::vector<int> all;
  for (size_t d = 0; d < dims.size(); ++d) all.push_back(int(d));
  const Port added = over_chunks(a.rest, all, "added");
  const Shape lines = c_.side_by_side(along()), whole = c_.side_by_side(dims);
  MapOf one(to, lines);
  const Port ones = one.add(to.pool.literal(1.0), "one");
  Loop loop(Extent(c_.block), c_.r.reverse, c_.clock(), to.symbols);
  const Port decay = loop.state("decay", lines, ones), local = loop.state("local", whole);
  const Port g = loop.arg("factor", lines, factor_, Chunks::beside(along().size()));
  const Port added_now = loop.arg("added", whole, added, Chunks::beside(dims.size()));
  MapOf e(loop.step, lines), l(loop.step, whole);
  Pool& p = loop.step.pool;
  const auto here = every(whole.size()), at = every(lines.size());
  const Port decays = e.add(p.make(Op::mul, {e.at(g, at), e.at(decay, at)}), "decay");
  const auto place = both({ir::axis(0)}, along(every(dims.size(), 1)));
  const Id kept = p.make(Op::mul, {l.at(g, place), l.at(local, here)});
  const Port locals = l.add(p.make(Op::add, {kept, l.at(added_now, here)}), "local");
  loop.next(decays), loop.next(locals);
  for (Port x : {decay, decays}) loop.emit(x, Chunks::beside(along().size()), c_.over.shape(along()));
  for (Port x : {local, locals}) loop.emit(x, Chunks::beside(dims.size()), c_.over.shape(dims));
  const NodeId id = loop.add_to(to, c_.like);
  end_decay_ = {id, 0}, end_ = {id, 1};
  decay_[0] = {id, 2}, decay_[1] = {id, 3}, local_[0] = {id, 4}, local_[1] = {id, 5};
}

// From chunk to chunk; leaves what each starts from. The state after the last one.
Port ChunkState::ends(std::optional<Port> init) {
  Loop loop(Extent(c_.count), c_.r.reverse, c_.clock(), c_.to().symbols);
  const Port state = loop.state("start", dims, init);
  const Port e = loop.arg("decay", along(), end_decay_, every(along().size() + 1));
  const Port l = loop.arg("local", dims, end_, every(dims.size() + 1));
  MapOf m(loop.step, dims);
  const auto here = every(dims.size());
  const Id kept = loop.step.pool.make(Op::mul, {m.at(e, along(here)), m.at(state, here)});
  loop.next(m.add(loop.step.pool.make(Op::add, {kept, m.at(l, here)}), "next"));
  loop.emit(state, every(dims.size() + 1), c_.side_by_side(dims));
  const NodeId id = loop.add_to(c_.to(), c_.like);
  start_ = {id, 1};
  return {id, 0};
}

Id ChunkState::carried(int after, MapOf& m, const std::vector<Form>& at) const {
  const Form n = ir::axis(0), i = ir::axis(1);
  return c_.to().pool.make(Op::mul,
                           {m.at(decay_[after], both({n, i}, along(at))), m.at(start_, both({n}, at))});
}

Id ChunkState::made(int after, MapOf& m, const std::vector<Form>& at) const {
  return m.at(local_[after], both({ir::axis(0), ir::axis(1)}, at));
}

Port ChunkState::whole(int after) const {
  MapOf m(c_.to(), c_.over.shape(dims));
  const auto at = every(dims.size(), 2);
  const Id start = carried(after, m, at), local = made(after, m, at);
  return m.add(c_.to().pool.make(Op::add, {start, local}), c_.like.name);
}

} // namespace tang::rewrite
