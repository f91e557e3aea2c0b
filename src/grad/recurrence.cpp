// The adjoint of a recurrence: a recurrence of the opposite direction whose states are the state adjoints.
// It re-runs the step from the old states, which the forward recurrence emits.
#include <algorithm>

#include "tang/grad/adjoint.hpp"
#include "tang/grad/pull.hpp"
#include "tang/grad/step.hpp"

namespace tang::diff {

using ir::Recur;

namespace {

// Distinct (time, local) points touch distinct coordinates: each axis in one coordinate, mixed radix there.
bool injective(const std::vector<Form>& view, const std::vector<Extent>& extents) {
  std::vector<int> used(extents.size(), 0);
  for (auto& f : view) {
    std::vector<std::pair<int64_t, int>> terms;
    for (auto& [a, k] : f.axes) {
      terms.push_back({k < 0 ? -k : k, a});
      ++used[size_t(a)];
    }
    std::sort(terms.begin(), terms.end());
    int64_t span = 1;
    for (size_t t = 0; t < terms.size(); ++t) {
      const Extent& e = extents[size_t(terms[t].second)];
      if (terms[t].first < span || (t + 1 < terms.size() && !e.is_constant())) return false;
      if (t + 1 < terms.size()) span += terms[t].first * (e.value() - 1);
    }
  }
  for (size_t a = 0; a < extents.size(); ++a)
    if (used[a] != 1 && !(extents[a] == Extent(1))) return false;
  return true;
}

std::vector<Extent> over_time(const Recur& r, const std::vector<Extent>& local) {
  std::vector<Extent> out{r.steps};
  out.insert(out.end(), local.begin(), local.end());
  return out;
}

struct Reversal {
  Graph& g;
  NodeId id;
  const Recur f;
  Moving m;
  Recur back = {};
  Graph step = *f.step;
  std::vector<size_t> adjoint_of =
      {}; // the states of `back` are the adjoints of these states, accumulators after

  struct Sent {
    Port source;
    uint32_t port; // of back
    bool emitted;  // else an accumulator
    size_t arg;
  };

  std::vector<Sent> sent = {};

  Port old(size_t s) const { return {f.states[s].in, 0}; }

  // state k of back: [shape] zeros or `init`.
  Port carry(const std::string& name, const std::vector<Extent>& shape, std::optional<Port> init) {
    const NodeId in = add_input(step, name, shape, ir::Input::state);
    back.states.push_back({init, in, {}});
    return {in, 0};
  }

  // What flowed to a read of the step this time joins `total`, the adjoint of the whole source.
  Port accumulated(Port total, const Recur::Read& a, Port part) {
    Comp y;
    y.points = step.shape({a.in, 0});
    y.outs = {every_axis(y.points.size())};
    const int time = rewrite::add_read(y, {{f.time, 0}, {}});
    std::vector<Form> view;
    for (auto& v : a.view)
      view.push_back(ir::compose(v, [&](int x) { return x == 0 ? ir::uniform(time) : ir::axis(x - 1); }));
    const int source = rewrite::add_read(y, {total, view});
    const Id term = read_at(step, y, part, here(y.points.size()));
    const Port placed = pull(step, y, source, term, expr::yes(step.pool), "placed", {});
    return plus(total, placed);
  }

  Port plus(Port a, Port b) {
    Comp n;
    n.points = step.shape(a);
    n.outs = {every_axis(n.points.size())};
    const Id x = read_at(step, n, a, here(n.points.size())), y = read_at(step, n, b, here(n.points.size()));
    n.lift = {step.pool.make(Op::add, {x, y})};
    return {step.add({std::move(n), "accumulated", {}}), 0};
  }
};

} // namespace

void Adjoints::recurrence(NodeId id) {
  Reversal r{g_, id, *g_[id].recur(), moving(g_, *g_[id].recur(), needed_)};
  const Recur& f = r.f;
  const uint32_t states = uint32_t(f.states.size()), emits = uint32_t(f.emits.size());
  Recur& back = r.back;
  back.steps = f.steps;
  back.reverse = !f.reverse;
  back.live = f.live;
  back.time = f.time;
  for (auto& s : f.states) std::get<ir::Input>(r.step.nodes[s.in].what).kind = ir::Input::data;

  std::set<Port> wanted;
  for (size_t s = 0; s < states; ++s)
    if (r.m.states[s]) wanted.insert(r.old(s));
  for (size_t a = 0; a < f.args.size(); ++a)
    if (r.m.args[a]) wanted.insert({f.args[a].in, 0});
  Adjoints inner(r.step, wanted, proofs_);
  for (size_t s = 0; s < states; ++s) {
    if (!r.m.states[s]) continue;
    std::optional<Port> init;
    if (const Port final{id, uint32_t(s)}; parts_.count(final)) init = bar(final);
    const std::string name = "d" + r.step[f.states[s].in].name;
    inner.add(f.states[s].out, r.carry(name, r.step.shape(r.old(s)), init));
    r.adjoint_of.push_back(s);
  }
  std::vector<Recur::Read> seeds;
  for (size_t e = 0; e < emits; ++e) {
    const Port whole{id, uint32_t(states + e)};
    if (!parts_.count(whole) || !r.m.step.count(f.emits[e].out)) continue;
    const NodeId in =
        add_input(r.step, "d" + r.step.label(f.emits[e].out), r.step.shape(f.emits[e].out), ir::Input::data);
    seeds.push_back({bar(whole), f.emits[e].view, in});
    inner.add(f.emits[e].out, {in, 0});
  }
  inner.run();
  for (size_t k = 0; k < r.adjoint_of.size(); ++k) back.states[k].out = inner.bar(r.old(r.adjoint_of[k]));
  for (size_t a = 0; a < f.args.size(); ++a) {
    const Recur::Read& read = f.args[a];
    const Port x{read.in, 0};
    if (!r.m.args[a] || !inner.reaches(x)) continue;
    const Port part = inner.bar(x);
    const auto local = r.step.shape(x);
    if (injective(read.view, over_time(f, local))) {
      r.sent.push_back({read.from, uint32_t(back.emits.size()), true, a});
      back.emits.push_back({part, read.view, g_.shape(read.from)});
      continue;
    }
    const bool moves_in_time =
        std::any_of(read.view.begin(), read.view.end(), [](const Form& v) { return v.axis(0) != 0; });
    const std::string name = "d" + r.step[read.in].name + " so far";
    const Port total = r.carry(name, moves_in_time ? g_.shape(read.from) : local, {});
    r.sent.push_back({read.from, uint32_t(back.states.size() - 1), false, a});
    back.states.back().out = moves_in_time ? r.accumulated(total, read, part) : r.plus(total, part);
  }
  ir::redirect(r.step, inner.instead());

  // What the reversed step still reads: arguments as they were, old states from the forward history.
  const std::set<NodeId> used = inputs_used(r.step, back);
  back.args = seeds;
  for (auto& a : f.args)
    if (used.count(a.in)) back.args.push_back(a);
  Recur forward = f;
  for (size_t s = 0; s < states; ++s) {
    if (!used.count(f.states[s].in)) continue;
    const auto shape = over_time(f, r.step.shape(r.old(s)));
    const uint32_t port = uint32_t(states + forward.emits.size());
    forward.emits.push_back({r.old(s), here(shape.size()), shape});
    back.args.push_back({{id, port}, here(shape.size()), f.states[s].in});
  }
  if (forward.emits.size() > emits) {
    ir::Node n = g_[id];
    n.what = forward;
    const NodeId now = g_.add(std::move(n));
    for (uint32_t k = 0; k < states + emits; ++k) instead_[{id, k}] = {now, k};
    for (auto& a : back.args)
      if (a.from.node == id) a.from.node = now;
  }
  const uint32_t carried = uint32_t(back.states.size());
  settle(back, r.step);
  const std::string name = "d" + g_[id].name;
  const Where where = g_[id].where;
  const std::vector<Recur::Read>& reads = f.args;
  const auto adjoint_of = r.adjoint_of;
  const NodeId now = g_.add({std::move(back), name, where});
  for (size_t k = 0; k < adjoint_of.size(); ++k)
    if (auto init = f.states[adjoint_of[k]].init; init && moves(*init)) add(*init, {now, uint32_t(k)});
  for (auto& s : r.sent) {
    const Port from{now, s.emitted ? carried + s.port : s.port};
    Comp y;
    std::vector<Form> view = here(g_.shape(s.source).size());
    if (s.emitted) {
      y.points = g_.shape(s.source);
    } else if (g_.shape(from) == g_.shape(s.source) &&
               std::any_of(reads[s.arg].view.begin(), reads[s.arg].view.end(),
                           [](const Form& v) { return v.axis(0) != 0; })) {
      add(s.source, from);
      continue;
    } else {
      y.points = f.step->shape({reads[s.arg].in, 0});
      view.clear();
      for (auto& v : reads[s.arg].view) view.push_back(ir::compose(v, [](int x) { return ir::axis(x - 1); }));
    }
    y.outs = {every_axis(y.points.size())};
    const Id term = read_at(g_, y, from, here(y.points.size()));
    if (s.emitted) { // a fold of one term: 0 where no step sent anything
      y.lift = {term};
      y.monoid = sum_monoid(g_.pool);
      add(s.source, {g_.add({std::move(y), "d" + g_.label(s.source), where}), 0});
      continue;
    }
    const int source = rewrite::add_read(y, {s.source, view});
    add(s.source, pull(g_, y, source, term, expr::yes(g_.pool), "d" + g_.label(s.source), where));
  }
}

} // namespace tang::diff
