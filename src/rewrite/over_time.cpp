#include "tang/rewrite/over_time.hpp"

#include <algorithm>

#include "tang/rewrite/import.hpp"

namespace tang::rewrite {

using ir::Extent;

OverTime::OverTime(Graph& to, const Graph& step, const ir::Recur& r, int64_t block)
    : to_(to), step_(step), r_(r), block_(block), varies_(step.nodes.size(), 0) {
  varies_[r.time] = 1;
  // A state has a value at every time, also where the next one is the same each time.
  for (auto& s : r.states) varies_[s.in] = varies_[s.out.node] = 1;
  for (auto& a : r.args)
    varies_[a.in] = std::any_of(a.view.begin(), a.view.end(), [](const Form& f) { return f.axis(0) != 0; });
  for (NodeId id = 0; id < step.nodes.size(); ++id)
    for (Port p : ir::sources(step, id)) varies_[id] |= varies_[p.node];
}

std::vector<Extent> OverTime::shape(std::vector<Extent> local) const {
  const Extent front[] = {Extent(r_.steps.value() / block_), Extent(block_)};
  local.insert(local.begin(), front, front + 2);
  return local;
}

Form OverTime::Moved::form(const Form& f) {
  return ir::compose(f, axes_, [&](int u) { return is_time(u) ? t_.time(place_) : ir::uniform(take(u)); });
}

Domain OverTime::Moved::domain(const Domain& d) {
  return ir::moved(d, [&](const Form& f) { return form(f); });
}

int OverTime::Moved::take(int arg) {
  if (auto it = taken_.find(arg); it != taken_.end()) return it->second;
  const Arg& a = from_.args[size_t(arg)];
  std::vector<Form> at;
  for (auto& f : a.view) at.push_back(form(f));
  for (auto& x : t_.r_.args) { // an argument of the step: where it lies outside
    if (!(a.from == Port{x.in, 0})) continue;
    Arg read{x.from, {}};
    for (auto& f : x.view)
      read.view.push_back(ir::compose(f, [&](int d) { return d ? at[size_t(d) - 1] : t_.time(place_); }));
    return taken_[arg] = add_read(into_, read);
  }
  const Port source = t_.array(a.from);
  if (t_.varies(a.from)) at.insert(at.begin(), {place_.segment, place_.inside});
  return taken_[arg] = add_read(into_, {source, at});
}

Id OverTime::Moved::read(int arg, Type type) {
  Pool& p = t_.to_.pool;
  return is_time(arg) ? index(t_.time(place_)) : read_leaf(p, type, take(arg));
}

Id OverTime::Moved::index(const Form& f) {
  const auto term = as_term(t_.to_.pool, f);
  check(term.has_value(), "a coordinate of a step with a symbolic offset");
  return *term;
}

Id OverTime::Moved::body(Id term) {
  Pool& p = t_.to_.pool;
  return expr::transplant(t_.step_.pool, term, p, [&](const expr::Term& x) -> Id {
    const int k = int(x.whole);
    if (x.op == Op::holds) return add_guard(p, into_, domain(from_.guards[size_t(k)]));
    if (x.op == Op::coord) return index(axes_(k));
    return x.op == Op::arg ? read(k, x.type) : p.leaf(x.op, x.type, x.whole);
  });
}

Comp OverTime::copied(const Comp& c, bool varies) {
  const int lead = varies ? 2 : 0;
  Comp n;
  n.points = varies ? shape(c.points) : c.points;
  n.folds = c.folds;
  const auto axes = [lead](int a) { return ir::axis(a + lead); };
  Moved m(*this, c, n, varies ? Place{ir::axis(0), ir::axis(1)} : Place{}, axes);
  n.domain = m.domain(c.domain);
  for (Id l : c.lift) n.lift.push_back(m.body(l));
  if (c.monoid) {
    n.monoid = c.monoid;
    for (Id& e : n.monoid->combine)
      e = expr::transplant(step_.pool, e, to_.pool,
                           [&](const expr::Term& t) { return to_.pool.leaf(t.op, t.type, t.whole); });
  }
  for (auto& o : c.outs) {
    ir::Out out;
    if (varies) out.axes = {0, 1};
    for (int a : o.axes) out.axes.push_back(a + lead);
    if (!o.view.empty()) {
      if (varies) out.view = {ir::axis(0), ir::axis(1)};
      for (auto& f : o.view) out.view.push_back(m.form(f));
      out.shape = varies ? shape(o.shape) : o.shape;
    }
    n.outs.push_back(std::move(out));
  }
  return n;
}

Port OverTime::array(Port p) {
  if (auto it = arrays_.find(p); it != arrays_.end()) return it->second;
  if (other)
    if (const auto made = other(p)) return arrays_[p] = *made;
  const Node& n = step_[p.node];
  if (const Comp* c = n.comp()) {
    const NodeId now = to_.add({copied(*c, varies(p)), n.name, n.where});
    for (uint32_t k = 0; k < c->lift.size(); ++k) arrays_[{p.node, k}] = {now, k};
    return arrays_.at(p);
  }
  // An argument or the time by itself: a copy.
  Comp read, out;
  const int lead = varies(p) ? 2 : 0;
  read.points = step_.shape(p);
  read.args = {{p, {}}};
  for (size_t d = 0; d < read.points.size(); ++d) read.args[0].view.push_back(ir::axis(int(d)));
  out.points = lead ? shape(read.points) : read.points;
  out.outs = {{}};
  for (int d = 0; d < int(out.points.size()); ++d) out.outs[0].axes.push_back(d);
  Moved m(*this, read, out, {ir::axis(0), ir::axis(1)}, [lead](int a) { return ir::axis(a + lead); });
  out.lift = {m.read(0, step_.type(p))};
  return arrays_[p] = {to_.add({std::move(out), n.name, n.where}), 0};
}

} // namespace tang::rewrite
