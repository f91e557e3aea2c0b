#include "tang/lower/recur.hpp"

#include <algorithm>

#include "tang/lower/emitters.hpp"
#include "tang/lower/group.hpp"

namespace tang::lower {

using ir::NodeId;
using kernel::Apply;
using kernel::constant;
using kernel::variable;

namespace {

int64_t bytes(const Bound& b) {
  int64_t n = ir::row(b.format).bits / 8;
  for (int64_t e : b.shape) n *= e;
  return n + 64;
}
// to[point] = from[point] for every point of `shape`; either side may be a window over time. No `from`: zeros.
Lowered copy(const plan::Plan& p, const Bound* from, const Bound& to, const std::vector<int64_t>& shape, expr::Type type, int time,
             const target::Target& t, const std::string& label) {
  plan::Group group;
  Choice choice;
  ir::Graph none;
  const Surroundings around{[&](Port port) { return port.port == 0 ? *from : to; }, time};
  Frame f(none, p, around, group, choice, t);
  const Homes homes = f.homes();
  Apply a;
  std::vector<Coordinate> at;
  for (int64_t e : shape) {
    const kernel::Var v = f.k.fresh("x");
    a.axes.push_back({v, e});
    at.push_back({variable(v), {}});
  }
  Ref dst = element(homes({0, 1}), at);
  dst.memory = f.global({0, 1}, true);
  for (size_t d = 0; d < dst.index.size() && !to.inside; ++d) {  // what falls outside is nobody's
    a.bounds.push_back(dst.index[d]);
    a.bounds.push_back({constant(to.shape[d] - 1) - dst.index[d].affine, {}});
  }
  if (from) {
    Ref src = element(homes({0, 0}), at);
    src.checked = !from->inside;
    a.body.refs.push_back(src);
    a.body.values.push_back(f.k.pool->leaf(expr::Op::arg, type, 0));
  } else {
    a.body.values.push_back(f.k.pool->literal(expr::Value{type, expr::State::present, 0, 0}));
  }
  a.dst = {dst};
  a.fill = {std::nullopt};
  vectorize(f.k, a, int(a.axes.size()) - 1);
  f.k.body = std::move(f.head);
  emit(f.k.body, std::move(a));
  Lowered out;
  out.kernel = std::move(f.k);
  out.arguments = std::move(f.arguments);
  out.label = label;
  out.schedule = "copy";
  globals_first(out.kernel, out.arguments);
  return out;
}
// Does every point of a window lie in the source, for every time?
bool lies_inside(const std::vector<ir::Form>& view, int64_t steps, const std::vector<int64_t>& window, const std::vector<int64_t>& shape) {
  std::vector<ir::Extent> extents{steps};
  for (int64_t e : window) extents.push_back(e);
  for (size_t d = 0; d < view.size(); ++d) {
    const auto [lo, hi] = ir::range(view[d], extents, {});
    if (lo < 0 || hi >= shape[d]) return false;
  }
  return true;
}
std::vector<int64_t> bound_shape(const std::vector<ir::Extent>& s) {
  std::vector<int64_t> out;
  for (auto& e : s) out.push_back(e.value());
  return out;
}
bool empty(const std::vector<int64_t>& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }
// Does the view take all of what is bound, unmoved?
bool is_whole(const std::vector<ir::Form>& view, const std::vector<int64_t>& shape, const Bound& source) {
  if (!source.view.empty() || shape != source.shape || view.size() != shape.size()) return false;
  for (size_t d = 0; d < view.size(); ++d)
    if (!(view[d] == ir::axis(int(d) + 1))) return false;
  return true;
}
// The window of `view` in what the outer binding says: views compose.
Bound window(Bound outer, const std::vector<ir::Form>& view, int64_t steps, const std::vector<int64_t>& shape) {
  check(outer.view.empty(), "a window of a window is copied first");
  outer.inside = lies_inside(view, steps, shape, outer.shape);
  outer.view = view;
  return outer;
}

struct RecurLowerer {
  const ir::Recur& r;
  NodeId node;
  const plan::Plan& outer;
  const Surroundings& around;
  const plan::Plan& body;
  const schedule::Schedule& s;
  const target::Target& t;
  int step, depth;
  Program& out;
  const ir::Graph& g = *body.graph;
  std::map<Port, Bound> bounds = {};  // of the body's ports
  int time = -1;

  int temporary(const Bound& b) {
    out.temporaries.push_back(bytes(b));
    return int(out.temporaries.size()) - 1;
  }
  Bound fresh(Port p, kernel::Format f) {
    Bound b{0, f, bound_shape(g.shape(p))};
    b.what = temporary(b);
    return b;
  }
  void add(Lowered l) {
    l.step = step;
    out.kernels.push_back(std::move(l));
  }
  std::string label(const char* what, size_t k) const { return outer.graph->label({node, 0}) + " " + what + std::to_string(k); }
  const Bound& at(Port p) {
    auto it = bounds.find(p);
    if (it != bounds.end()) return it->second;
    const plan::Buffer* b = body.buffer(p);
    check(b, "a port of a recurrence's body without a buffer: " + g.label(p));
    if (b->overwrites) return bounds.emplace(p, at({*b->overwrites, 0})).first->second;
    return bounds.emplace(p, fresh(p, b->format)).first->second;
  }
  void copy_port(const Bound* from, const Bound& to, Port shaped, const std::string& what) {
    if (empty(bound_shape(g.shape(shaped)))) return;
    add(copy(outer, from, to, bound_shape(g.shape(shaped)), g.type(shaped), time, t, what));
  }
  // What a recurrence inside another reads of a window of the outer one, by itself.
  Bound copied(const Bound& window, Port from) {
    Bound whole{0, window.format, bound_shape(outer.graph->shape(from))};
    whole.what = temporary(whole);
    copy_window(window, whole, from, label("part ", from.node));
    return whole;
  }
  // A window moves with the time of the recurrence around this one.
  void copy_window(const Bound& window, const Bound& to, Port from, const std::string& what) {
    const auto shape = bound_shape(outer.graph->shape(from));
    if (!empty(shape)) add(copy(outer, &window, to, shape, outer.graph->type(from), around.time, t, what));
  }
  void run() {
    const int64_t steps = r.steps.value();
    Bound clock{0, kernel::Format::i64, {}};
    time = temporary(clock);
    clock.what = time;
    bounds[{r.time, 0}] = clock;
    for (auto& x : r.states) bounds[{x.in, 0}] = fresh({x.in, 0}, g[x.in].input()->format);
    for (auto& x : r.args) {
      Bound source = around.bind(x.from);
      if (is_whole(x.view, bound_shape(g.shape({x.in, 0})), source)) { // the same at every time: no window
        bounds[{x.in, 0}] = source;
        continue;
      }
      if (!source.view.empty()) source = copied(source, x.from);
      bounds[{x.in, 0}] = window(source, x.view, steps, bound_shape(g.shape({x.in, 0})));
    }
    // Before the loop: states start, results that no step reaches are 0.
    for (size_t k = 0; k < r.states.size(); ++k) {
      const Port in{r.states[k].in, 0};
      const std::optional<Bound> init = r.states[k].init ? std::optional(around.bind(*r.states[k].init)) : std::nullopt;
      if (init && !init->view.empty()) copy_window(*init, bounds.at(in), *r.states[k].init, label("start ", k));
      else copy_port(init ? &*init : nullptr, bounds.at(in), in, label("start ", k));
    }
    std::vector<std::optional<Bound>> emitted(r.emits.size());
    for (size_t e = 0; e < r.emits.size(); ++e) {
      const Port port{node, uint32_t(r.states.size() + e)};
      if (!outer.buffer(port)) continue;
      const Bound whole = around.bind(port);
      if (!empty(whole.shape)) add(copy(outer, nullptr, whole, whole.shape, g.type(r.emits[e].out), -1, t, label("clear ", e)));
      emitted[e] = window(whole, r.emits[e].view, steps, bound_shape(g.shape(r.emits[e].out)));
    }
    Loop loop;
    loop.reverse = r.reverse;
    loop.depth = depth;
    loop.time = time;
    loop.first = int(out.kernels.size());
    for (int64_t k = 0; k < steps; ++k)
      loop.live.push_back(std::any_of(r.live.begin(), r.live.end(), [&](const ir::Conj& c) {
        return std::all_of(c.begin(), c.end(), [&](const ir::Form& f) { return ir::value(f, {k}) >= 0; });
      }));
    const size_t mine = out.loops.size();
    out.loops.push_back(loop);
    // A step: what is emitted or carried of the old values first, then the body, then new values.
    for (size_t e = 0; e < r.emits.size(); ++e)
      if (emitted[e] && g[r.emits[e].out.node].input()) copy_port(&bounds.at(r.emits[e].out), *emitted[e], r.emits[e].out, label("emit ", e));
    std::map<size_t, Bound> held;
    for (size_t k = 0; k < r.states.size(); ++k)
      if (g[r.states[k].out.node].input()) {
        held[k] = fresh(r.states[k].out, bounds.at(r.states[k].out).format);
        copy_port(&bounds.at(r.states[k].out), held[k], r.states[k].out, label("hold ", k));
      }
    const Surroundings inside{[this](Port p) { return at(p); }, time};
    lower_steps(body, inside, s, t, depth + 1, step, out);
    for (size_t e = 0; e < r.emits.size(); ++e)
      if (emitted[e] && !g[r.emits[e].out.node].input()) copy_port(&at(r.emits[e].out), *emitted[e], r.emits[e].out, label("emit ", e));
    for (size_t k = 0; k < r.states.size(); ++k) {
      const Bound& old = bounds.at({r.states[k].in, 0});
      const Bound now = held.count(k) ? held.at(k) : at(r.states[k].out);
      if (now.what != old.what) copy_port(&now, old, {r.states[k].in, 0}, label("carry ", k));
    }
    out.loops[mine].count = int(out.kernels.size()) - loop.first;
    for (size_t k = 0; k < r.states.size(); ++k)
      if (outer.buffer({node, uint32_t(k)})) {
        const Bound to = around.bind({node, uint32_t(k)});
        copy_port(&bounds.at({r.states[k].in, 0}), to, {r.states[k].in, 0}, label("final ", k));
      }
  }
};

}  // namespace

void lower_recur(const ir::Recur& r, NodeId node, const plan::Plan& outer, const Surroundings& around, const plan::Plan& body,
                 const schedule::Schedule& s, const target::Target& t, int step, int depth, Program& out) {
  RecurLowerer{r, node, outer, around, body, s, t, step, depth, out}.run();
}
void lower_steps(const plan::Plan& p, const Surroundings& around, const schedule::Schedule& s, const target::Target& t, int depth,
                 std::optional<int> as_step, Program& out) {
  ir::Graph g = *p.graph;  // lowering splits absence from values in the graph's pool; the plan's graph stays as it is
  for (auto& n : g.nodes)  // nothing is one bound that never holds: an empty list of pieces would read as no test
    if (auto* c = std::get_if<ir::Comp>(&n.what); c && c->domain.empty()) c->domain = {{ir::constant(-1)}};
  for (size_t k = 0; k < p.steps.size(); ++k) {
    const plan::Step& step = p.steps[k];
    const int number = as_step ? *as_step : int(k);
    if (step.recur) {
      lower_recur(*(*p.graph)[*step.recur].recur(), *step.recur, p, around, *step.body, s, t, number, depth, out);
      continue;
    }
    GroupKernels made = lower_group(g, p, around, step.group, s, t, out.temporaries);
    std::string label;
    for (auto& m : step.group.members) label += (label.empty() ? "" : "+") + g.label({m.node, 0});
    for (auto& b : made.before) {
      b.step = number;
      b.label = label + " operand";
      out.kernels.push_back(std::move(b));
    }
    made.main.step = number;
    made.main.label = label;
    out.kernels.push_back(std::move(made.main));
    for (auto& a : made.after) {
      a.step = number;
      a.label = label + " parts";
      out.kernels.push_back(std::move(a));
    }
  }
}

}  // namespace tang::lower
