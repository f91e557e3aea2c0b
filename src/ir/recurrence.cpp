#include "tang/ir/recurrence.hpp"

#include <algorithm>

#include "tang/base/hash.hpp"
#include "tang/ir/builder_state.hpp"

namespace tang::ir {

Carried carried(std::string name, const Tensor& init) { return {std::move(name), init, {}, Format::f32}; }

Carried carried(std::string name, std::vector<Extent> shape, Format format) {
  return {std::move(name), std::nullopt, std::move(shape), format};
}

// ---- reads across the border of a step
// ----------------------------------------------------------------------------
Builder* step_around(const Tensor& t) {
  Builder* const now = Builder::current();
  if (!now || now == t.builder) return nullptr;
  for (Builder* b = now; b && b->state().around;) {
    b = b->state().around->outer;
    if (b == t.builder) return now;
  }
  return nullptr;
}

namespace {
Format format_of(const Graph& g, Port p) {
  const Input* in = g[p.node].input();
  return in ? in->format : default_format(g.type(p));
}

// The step's input that holds `from` of the graph around it, cut by `view`.
Tensor input_of(Builder& step, Port from, const std::vector<Form>& view, const std::vector<Extent>& shape,
                Where where) {
  auto& s = step.state();
  auto& around = *s.around;
  for (auto& r : around.reads)
    if (r.from == from && r.view == view && s.g.shape({r.in, 0}) == shape) return {&step, {r.in, 0}};
  const Graph& outer = around.outer->state().g;
  const NodeId in = s.g.add({Input{Input::data, shape, format_of(outer, from)},
                             "read " + std::to_string(around.reads.size()), where});
  around.reads.push_back({from, view, in});
  return {&step, {in, 0}};
}

// The whole of a tensor of any graph around `b`, in b.
Tensor whole(Builder& b, const Tensor& t, Where where) {
  if (t.builder == &b) return t;
  const Tensor near = whole(*b.state().around->outer, t, where);
  std::vector<Form> view;
  for (size_t d = 0; d < near.shape().size(); ++d) view.push_back(axis(int(d) + 1));
  return input_of(b, near.port, view, near.shape(), where);
}
} // namespace

std::optional<Scalar> clock_of(Builder::State& s, const Axis& a) {
  for (Builder::State* at = &s; at->around; at = &at->around->outer->state())
    if (at->around->time.id == a.id) {
      const Tensor clock = whole(*s.self, at->around->clock, {});
      return s.read(s.self, clock.port, {}, {});
    }
  return std::nullopt;
}

namespace {
// Border by border from the outside; what a coordinate's axes mean is known only to the innermost step.
std::pair<Tensor, Coords> pulled(Builder& step, const Tensor& t, const Coords& all, bool innermost,
                                 Where where) {
  if (t.builder == &step) return {t, all};
  auto& s = step.state();
  Builder& outer = *s.around->outer;
  const Axis& time = s.around->time;
  const auto [source, coords] = pulled(outer, t, all, false, where);
  const std::vector<Extent> dims = source.shape();
  std::vector<Form> view;
  std::vector<Extent> shape;
  Coords rest;
  for (size_t d = 0; d < coords.size(); ++d) {
    int64_t speed = 0; // coordinates a step of time
    Index still = coords[d];
    still.axes.clear();
    for (auto& [a, k] : coords[d].axes)
      if (a.id == time.id)
        speed += k;
      else
        still.axes.emplace_back(a, k);
    const int local = int(shape.size()) + 1;
    if (speed && still.axes.empty() && still.values.empty()) {
      if (speed == 1 && still.c == Extent(0))
        outer.state().declare(time, dims[d], source.name() + ", dimension " + std::to_string(d), where,
                              false);
      view.push_back(axis(0, speed) + constant(still.c));
    } else if (speed && innermost && still.axes.size() == 1 && still.axes[0].second == 1 &&
               still.values.empty()) {
      const Axis& a = still.axes[0].first;
      s.form(Index(a), where);
      shape.push_back(s.extent(int(a.id), where));
      view.push_back(axis(0, speed) + axis(local) + constant(still.c));
      rest.push_back(Index(a));
    } else {
      shape.push_back(dims[d]);
      view.push_back(axis(local));
      rest.push_back(coords[d]);
    }
  }
  return {input_of(step, source.port, view, shape, where), rest};
}
} // namespace

std::pair<Tensor, Coords> brought(Builder& step, const Tensor& t, const Coords& coords, Where where) {
  return pulled(step, t, coords, true, where);
}

// ---- closing
// ------------------------------------------------------------------------------------------------------
namespace {
std::string text(const std::vector<Extent>& shape) {
  std::string out;
  for (auto& e : shape) out += (out.empty() ? "" : ", ") + e.text();
  return "[" + out + "]";
}

// A form over (time, dims..).
Form over_time(const Index& i, const Axis& time, const std::vector<Axis>& dims, const char* what,
               Where where) {
  if (!i.values.empty())
    throw Error(where, std::string(what) + " depends on a value",
                {{"it is a form of the time axis and of dimensions", {}}},
                "decide inside the step: select(..) or masked(..)");
  Form f = constant(i.c);
  for (auto& [a, k] : i.axes) {
    size_t d = 0;
    if (a.id != time.id) {
      while (d < dims.size() && dims[d].id != a.id) ++d;
      if (d++ == dims.size())
        throw Error(where, std::string(what) + " mentions axis '" + a.name + "'",
                    {{"it may mention the time axis '" + time.name + "' and the value's own dimensions", {}}},
                    "name it among the dimensions");
    }
    f = f + axis(int(d), k);
  }
  return f;
}

void check_next(const Tensor& next, const Tensor& old, const std::string& name, Builder& step, Where where) {
  if (next.builder != &step)
    throw Error(where, "the next state '" + name + "' is no tensor of the step", {},
                "map it inside the step");
  if (next.shape() == old.shape() && next.type() == old.type()) return;
  throw Error(where,
              "the next state '" + name + "' has shape " + text(next.shape()) + " of " +
                  expr::name(next.type()),
              {{"the state has " + text(old.shape()) + " of " + expr::name(old.type()), old.where()},
               {"the next one", next.where()}},
              "give the step's result the state's shape");
}

// Reads in structural order and under names that follow from it, whatever order the compiler evaluated
// operands in.
Rebuilt settled(const Graph& g, const Graph& outer, std::vector<Recur::Read>& reads) {
  auto key = [&](const Recur::Read& r) {
    uint64_t h = combine(outer[r.from.node].hash, r.from.port);
    for (auto& f : r.view) h = combine(h, f.hash());
    for (auto& e : g.shape({r.in, 0})) h = combine(h, e.hash());
    return h;
  };
  std::sort(reads.begin(), reads.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
  std::set<std::string> taken;
  std::map<NodeId, std::string> names;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const bool read = std::any_of(reads.begin(), reads.end(), [&](auto& r) { return r.in == id; });
    if (g[id].input() && !read) taken.insert(g[id].name);
  }
  for (auto& r : reads) {
    const std::string base = outer[r.from.node].name.empty() ? "arg" : outer[r.from.node].name;
    std::string name = base;
    for (int n = 1; !taken.insert(name).second; ++n) name = base + "_" + std::to_string(n);
    names[r.in] = name;
  }
  Copier copier(g);
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    Node n = copier.imported(id);
    if (auto it = names.find(id); it != names.end()) n.name = it->second;
    const NodeId now = copier.to.add(std::move(n));
    for (uint32_t p = 0; p < g.ports(id); ++p) copier.set({id, p}, {now, p});
  }
  Rebuilt renamed = copier.finish(), out = canonical(renamed.graph);
  for (auto& m : renamed.map) m = m < 0 ? -1 : out.map[size_t(m)];
  out.map = std::move(renamed.map);
  return out;
}
} // namespace

Recurred recur(const Axis& t, const std::vector<Carried>& states,
               const std::function<Step(const std::vector<Tensor>&)>& step_of, const Recurring& options,
               Where where) {
  Builder* outer = nullptr;
  for (auto& c : states)
    if (c.init) {
      if (outer && c.init->builder != outer)
        throw Error(where, "the states of a recurrence belong to two graphs", {},
                    "give all of them inits of one builder");
      outer = c.init->builder;
    }
  if (!outer) outer = Builder::current();
  if (!outer) throw Error(where, "a recurrence outside any graph", {}, "make a Builder first");
  // Nested: inits of the graph around are brought in.
  if (outer != Builder::current() && Builder::current() && Builder::current()->state().around)
    outer = Builder::current();
  auto& out_state = outer->state();
  out_state.form(Index(t), where); // registers a declared extent

  Builder inner;
  auto& s = inner.state();
  s.g.symbols = out_state.g.symbols;
  s.around.emplace(
      Builder::State::Enclosing{outer, t, inner.input("time " + t.name, {}, Format::i32, where), {}});
  Recur r;
  std::vector<Tensor> old;
  for (auto& c : states) {
    std::optional<Tensor> init;
    if (c.init) init = whole(*outer, *c.init, where);
    old.push_back(inner.state(c.name, init ? init->shape() : c.shape,
                              init ? format_of(out_state.g, init->port) : c.format, where));
    r.states.push_back({init ? std::optional(init->port) : std::nullopt, old.back().port.node, {}});
  }
  const Step step = step_of(old);
  if (step.next.size() != states.size())
    throw Error(where,
                "the step gives " + std::to_string(step.next.size()) + " next states for " +
                    std::to_string(states.size()) + " states",
                {}, "give one a state, in their order");
  r.steps = out_state.extent(int(t.id), where);
  r.reverse = options.reverse;
  if (options.live) {
    r.live.clear();
    for (auto& piece : options.live->pieces) {
      Conj c;
      for (auto& i : piece) insert(c, over_time(i, t, {}, "live", where));
      r.live.push_back(c);
    }
    r.live = normal(r.live);
  }
  for (size_t k = 0; k < states.size(); ++k) {
    check_next(step.next[k], old[k], states[k].name, inner, where);
    r.states[k].out = step.next[k].port;
    s.g.outputs.push_back(
        {step.next[k].port, "next " + std::to_string(k), default_format(step.next[k].type())});
  }
  for (auto& e : step.emits) {
    if (e.value.builder != &inner)
      throw Error(where, "an emit is no tensor of the step", {}, "map it inside the step");
    Recur::Emit emit{e.value.port, {}, e.shape};
    const auto dims = e.value.shape();
    if (e.at.empty()) {
      emit.view.push_back(axis(0));
      emit.shape = {r.steps};
      for (size_t d = 0; d < dims.size(); ++d)
        emit.view.push_back(axis(int(d) + 1)), emit.shape.push_back(dims[d]);
    } else if (e.at.size() != e.shape.size() || e.dims.size() != dims.size()) {
      throw Error(
          where,
          "an emit with " + std::to_string(e.at.size()) + " coordinates and " +
              std::to_string(e.dims.size()) + " dimensions",
          {{"its array has " + std::to_string(e.shape.size()) + " dimensions, its value is " + text(dims),
            e.value.where()}},
          "give a coordinate a dimension of the array, and an axis a dimension of the value");
    }
    for (auto& i : e.at) emit.view.push_back(over_time(i, t, e.dims, "an emit", where));
    r.emits.push_back(emit);
    s.g.outputs.push_back(
        {e.value.port, "emit " + std::to_string(r.emits.size() - 1), default_format(e.value.type())});
  }
  for (auto& w : s.warnings) out_state.warnings.push_back(w);
  std::vector<Recur::Read> reads = s.around->reads;
  Rebuilt body = settled(s.g, out_state.g, reads);
  auto now = [&](NodeId id) {
    check(body.map[id] >= 0, "a node of a step that was not kept");
    return NodeId(body.map[id]);
  };
  for (auto& x : r.states) x.in = now(x.in), x.out.node = now(x.out.node);
  for (auto& x : reads) x.in = now(x.in);
  for (auto& x : r.emits) x.out.node = now(x.out.node);
  r.args = reads;
  r.time = now(s.around->clock.port.node);
  r.step = std::make_shared<const Graph>(std::move(body.graph));
  const size_t n_states = r.states.size(), n_emits = r.emits.size();
  const NodeId id = out_state.g.add({std::move(r), "recur", where});
  Recurred out;
  for (size_t k = 0; k < n_states + n_emits; ++k)
    (k < n_states ? out.states : out.emits).push_back({outer, {id, uint32_t(k)}});
  return out;
}

} // namespace tang::ir
