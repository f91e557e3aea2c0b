#include "tang/rewrite/times.hpp"

#include "tang/rewrite/import.hpp"

namespace tang::rewrite {

using ir::Extent;
using ir::Recur;

std::vector<Form> every(size_t dims, int first) {
  std::vector<Form> out;
  for (size_t d = 0; d < dims; ++d) out.push_back(ir::axis(first + int(d)));
  return out;
}

std::vector<Form> both(std::vector<Form> a, const std::vector<Form>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Extent> with_front(Extent e, std::vector<Extent> shape) {
  shape.insert(shape.begin(), std::move(e));
  return shape;
}

Stepped with_time(const Recur& r, const std::function<Id(Graph&, Comp&, Id)>& make) {
  const Graph& step = *r.step;
  Stepped out;
  bool reads_time = false;
  for (NodeId id = 0; id < step.nodes.size(); ++id)
    for (Port p : ir::sources(step, id)) reads_time |= p.node == r.time;
  for (auto& s : r.states) reads_time |= s.out.node == r.time;
  for (auto& e : r.emits) reads_time |= e.out.node == r.time;
  ir::Copier copier(step);
  for (NodeId id = 0; id < step.nodes.size(); ++id) {
    const NodeId now = copier.copy(id);
    if (id != r.time) continue;
    out.time = now;
    if (!reads_time) continue;
    Comp time;
    const Id i = read_leaf(copier.to.pool, Type::index, add_read(time, {{now, 0}, {}}));
    time.lift = {make(copier.to, time, i)};
    time.outs = {{}};
    copier.set({id, 0}, {copier.to.add({std::move(time), "time", {}}), 0});
  }
  for (NodeId id = 0; id < step.nodes.size(); ++id)
    for (uint32_t k = 0; k < step.ports(id); ++k) out.ports[{id, k}] = copier.at({id, k});
  for (auto& o : step.outputs) copier.to.outputs.push_back({out.ports.at(o.port), o.name, o.format});
  out.step = std::move(copier.to);
  return out;
}

namespace {
// The dimension of an emitted array that is the time, or -1.
int time_of(const Recur::Emit& e) {
  int at = -1;
  for (size_t d = 0; d < e.view.size(); ++d)
    if (e.view[d].axis(0) != 0) at = at < 0 && e.view[d].is_pick() ? int(d) : int(e.view.size());
  return at < int(e.view.size()) ? at : -1;
}

// Steps [from, from + count) of a recurrence, its time counted from 0. An array that it emits one row a step
// to holds these steps' rows alone.
Recur part(const Recur& r, int64_t from, int64_t count) {
  Recur out = r;
  out.steps = Extent(count);
  Stepped x = with_time(r, [&](Graph& g, Comp&, Id now) {
    return from ? g.pool.make(Op::add, {g.pool.literal(expr::whole(from)), now}) : now;
  });
  const auto later = [&](std::vector<Form>& view) {
    for (auto& f : view)
      f = ir::compose(f, [&](int a) { return a == 0 ? ir::axis(0) + ir::constant(from) : ir::axis(a); });
  };
  out.time = x.time;
  for (auto& s : out.states) s.in = x.ports.at({s.in, 0}).node, s.out = x.ports.at(s.out);
  for (auto& a : out.args) a.in = x.ports.at({a.in, 0}).node, later(a.view);
  for (auto& e : out.emits) {
    const int d = time_of(e);
    if (d >= 0)
      e.shape[size_t(d)] = Extent(count);
    else
      later(e.view);
    e.out = x.ports.at(e.out);
  }
  out.step = std::make_shared<const Graph>(std::move(x.step));
  return out;
}

// What two parts of a recurrence emitted to one array: the rows of the first are those before `from`, or each
// has the elements that exist.
Comp joined(Pool& p, const Recur::Emit& e, Type type, Port first, Port second, int64_t from) {
  Comp out;
  out.points = e.shape;
  out.outs = {{}};
  std::vector<Form> here = every(e.shape.size()), after = here;
  for (size_t d = 0; d < e.shape.size(); ++d) out.outs[0].axes.push_back(int(d));
  const int d = time_of(e);
  if (d >= 0) after[size_t(d)] = ir::axis(d) - ir::constant(from);
  const Id x = read_leaf(p, type, add_read(out, {first, here})),
           y = read_leaf(p, type, add_read(out, {second, after}));
  if (d < 0) {
    out.lift = {p.make(Op::or_else, {x, y})};
    return out;
  }
  const Id before = add_guard(p, out, {{ir::constant(from - 1) - ir::axis(d)}});
  out.lift = {p.make(Op::select, {before, x, y})};
  return out;
}

// All ports of `r`, from those of its first steps: `count` steps from `from` on follow.
std::vector<Port> both_parts(Graph& to, const Recur& r, const std::vector<Port>& first, int64_t from,
                             int64_t count, const Node& like) {
  Recur tail = part(r, r.reverse ? 0 : from, count);
  for (uint32_t k = 0; k < tail.states.size(); ++k) tail.states[k].init = first[k];
  const NodeId last = to.add({std::move(tail), like.name, like.where});
  std::vector<Port> out;
  for (uint32_t k = 0; k < r.states.size(); ++k) out.push_back({last, k});
  for (uint32_t k = 0; k < r.emits.size(); ++k) {
    const Port x = first[r.states.size() + k], y{last, uint32_t(r.states.size()) + k};
    const Comp all = joined(to.pool, r.emits[k], to.type(x), r.reverse ? y : x, r.reverse ? x : y,
                            r.reverse ? count : from);
    out.push_back({to.add({all, like.name, like.where}), 0});
  }
  return out;
}
} // namespace

Result<std::vector<Port>> in_segments(Graph& to, const Recur& r, int64_t block, const Node& like,
                                      const Remade& remade) {
  const int64_t steps = r.steps.value(), whole = steps / block * block, rest = steps - whole;
  if (!rest) return remade(r);
  const Result<std::vector<Port>> first = remade(part(r, r.reverse ? rest : 0, whole));
  if (!first) return Refusal{first.why()};
  return both_parts(to, r, *first, whole, rest, like);
}

std::string why_no_segments(const Graph& g, NodeId id, int64_t block) {
  const Recur* r = id < g.nodes.size() ? g[id].recur() : nullptr;
  if (!r) return "only a recurrence has segments";
  const std::string name = g.label({id, 0});
  if (!r->steps.is_constant()) return name + " has the symbolic number of steps " + r->steps.text();
  if (block < 1 || r->steps.value() < block)
    return name + " has " + std::to_string(r->steps.value()) + " steps, no segment of " +
           std::to_string(block);
  if (r->live != ir::everywhere()) return name + " skips steps";
  return "";
}

} // namespace tang::rewrite
