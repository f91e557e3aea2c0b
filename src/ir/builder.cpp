// What a Builder knows of axes and reads, and the graph it hands out.
#include <algorithm>

#include "tang/ir/builder_state.hpp"

namespace tang::ir {

using expr::Term;

std::string Builder::State::axis_name(int a) const {
  auto it = axis_names.find(a);
  return it == axis_names.end() || it->second.empty() ? "axis " + std::to_string(a) : it->second;
}

void Builder::State::declare(const Axis& a, const Extent& e, const std::string& who, Where where,
                             bool declared) {
  axis_names.emplace(int(a.id), a.name);
  auto [it, fresh] = axes.try_emplace(int(a.id), AxisFacts{e, who, where, declared});
  if (fresh || it->second.extent == e || (it->second.declared && !declared)) return;
  throw Error(where, "axis '" + axis_name(int(a.id)) + "' has two extents",
              {{it->second.extent.text() + "  from " + it->second.who, it->second.where},
               {e.text() + "  from " + who, where}},
              "slice the longer one, or use two axes");
}

const Extent& Builder::State::extent(int a, Where where) const {
  auto it = axes.find(a);
  if (it == axes.end())
    throw Error(where, "axis '" + axis_name(a) + "' indexes no tensor, so it has no extent", {},
                "declare it: axis(\"" + axis_name(a) + "\", extent)");
  return it->second.extent;
}

Form Builder::State::form(const Index& i, Where where) {
  Form f = constant(i.c);
  for (auto& [a, k] : i.axes) {
    if (const auto now = clock_of(*this, a)) {
      f = f + uniform(int(pool[now->id()].whole), k);
      continue;
    }
    axis_names.emplace(int(a.id), a.name);
    if (!axes.count(int(a.id)))
      if (auto e = declared_extent(a)) declare(a, *e, "its declaration", where, true);
    f = f + ir::axis(int(a.id), k);
  }
  for (auto& [s, k] : i.values) {
    own(*self, s);
    const Term t = pool[s.id()];
    if (t.op == Op::arg) {
      f = f + uniform(int(t.whole), k);
    } else if (t.op == Op::literal) {
      f = f + constant(Extent(t.whole * k));
    } else { // a computed index becomes a stored map of its own
      std::vector<Axis> points;
      Coords coords;
      for (int a : free_axes(s.id())) {
        points.push_back({uint32_t(a), axis_name(a)});
        coords.push_back(Index(points.back()));
      }
      const Scalar r = map(points, s, "index", where).at(coords, where);
      f = f + uniform(int(pool[r.id()].whole), k);
    }
  }
  return f;
}

Id Builder::State::guard(const Domain& d) {
  auto it = std::find(guards.begin(), guards.end(), d);
  if (it == guards.end()) it = guards.insert(guards.end(), d);
  return pool.leaf(Op::holds, Type::boolean, it - guards.begin());
}

Scalar Builder::State::read(Builder* b, Port from, const std::vector<Form>& view, Where where) {
  auto it = std::find_if(reads.begin(), reads.end(),
                         [&](const Read& r) { return r.from == from && r.view == view; });
  if (it == reads.end()) it = reads.insert(reads.end(), {from, view, where});
  return {b, pool.leaf(Op::arg, g.type(from), it - reads.begin())};
}

void Builder::State::free_axes_of_read(int read, std::set<int>& out) const {
  for (auto& f : reads[size_t(read)].view) {
    for (auto& t : f.axes) out.insert(t.first);
    for (auto& t : f.args) free_axes_of_read(t.first, out);
  }
}

std::set<int> Builder::State::free_axes(Id e) const {
  std::set<int> out;
  for (Id x : expr::schedule(pool, {e})) {
    const Term& t = pool[x];
    if (t.op == Op::coord) out.insert(int(t.whole));
    if (t.op == Op::arg) free_axes_of_read(int(t.whole), out);
    if (t.op == Op::holds)
      for (auto& piece : guards[size_t(t.whole)])
        for (auto& f : piece) {
          for (auto& u : f.axes) out.insert(u.first);
          for (auto& u : f.args) free_axes_of_read(u.first, out);
        }
  }
  return out;
}

namespace {
Tensor checked(const Tensor& t, const Coords& c, Where where) {
  check(t.builder, "a tensor without a builder");
  const auto shape = t.shape();
  if (c.size() == shape.size()) return t;
  std::string dims;
  for (auto& e : shape) dims += (dims.empty() ? "" : ", ") + e.text();
  throw Error(where, t.name() + " is read with " + std::to_string(c.size()) + " coordinates",
              {{t.name() + " has " + std::to_string(shape.size()) + " dimensions: [" + dims + "]",
                t.builder->state().g[t.port.node].where}},
              "give one coordinate a dimension");
}

std::string dimension(const Tensor& t, size_t d) { return t.name() + ", dimension " + std::to_string(d); }

std::vector<Form> forms(const Tensor& t, const Coords& coords, Where where) {
  auto& s = t.builder->state();
  const auto shape = t.shape();
  std::vector<Form> out;
  for (size_t d = 0; d < coords.size(); ++d) {
    const Index& i = coords[d];
    out.push_back(s.form(i, where));
    const bool pick = i.axes.size() == 1 && i.axes[0].second == 1 && i.values.empty() && i.c == Extent(0);
    if (pick) s.declare(i.axes[0].first, shape[d], dimension(t, d), where, false);
  }
  return out;
}
} // namespace

std::vector<Extent> Tensor::shape() const { return builder->state().g.shape(port); }

Type Tensor::type() const { return builder->state().g.type(port); }

Where Tensor::where() const { return builder->state().g[port.node].where; }

const std::string& Tensor::name() const {
  const std::string& n = builder->state().g[port.node].name;
  static const std::string unnamed = "a tensor";
  return n.empty() ? unnamed : n;
}

double size(const Tensor& t, int dim) {
  const auto shape = t.shape();
  if (dim < 0 || size_t(dim) >= shape.size())
    throw Error({}, t.name() + " has no dimension " + std::to_string(dim),
                {{"it has " + std::to_string(shape.size()) + " dimensions", {}}}, "count from 0");
  const Extent& e = shape[size_t(dim)];
  if (!e.is_constant())
    throw Error({},
                "size of " + t.name() + " in dimension " + std::to_string(dim) + " is symbolic: " + e.text(),
                {}, "fold a count, or bind the symbol before building");
  return double(e.value());
}

Scalar Tensor::at(const Coords& coords, Where where) const {
  checked(*this, coords, where);
  if (Builder* step = step_around(*this)) {
    const auto [near, rest] = brought(*step, *this, coords, where);
    return near.at(rest, where);
  }
  return builder->state().read(builder, port, forms(*this, coords, where), where);
}

Scalar Tensor::where_in_range(const Coords& coords, Where where) const {
  checked(*this, coords, where);
  Builder* step = step_around(*this);
  Builder* b = step ? step : builder;
  auto& s = b->state();
  const auto dims = shape();
  std::vector<Form> view;
  if (!step)
    view = forms(*this, coords, where);
  else
    for (auto& i : coords) view.push_back(s.form(i, where));
  Conj c;
  for (size_t d = 0; d < view.size(); ++d) {
    const bool whole =
        view[d].is_pick() && s.axes.count(view[d].picked()) && s.axes.at(view[d].picked()).extent == dims[d];
    if (whole) continue;
    insert(c, view[d]);
    insert(c, constant(dims[d] - Extent(1)) - view[d]);
  }
  const Scalar r = step ? at(coords, where) : s.read(b, port, view, where);
  return c.empty() ? r : Scalar(b, s.pool.make(Op::only, {s.guard({c}), r.id()}));
}

Scalar Tensor::at_or(const Scalar& pad, const Coords& coords, Where where) const {
  return or_else(where_in_range(coords, where), pad);
}

Scalar iota(const Index& i) {
  Builder* b = nullptr;
  for (auto& v : i.values) b = v.first.builder();
  // Without a read there is no builder yet; a thread-local one would be a global, so the axis carries it.
  check(b || !i.axes.empty(), "iota of a constant");
  b = b ? b : Builder::current();
  auto& s = b->state();
  const Form f = s.form(i, {});
  check(f.c.is_constant(), "iota of a symbolic constant");
  std::optional<Id> out;
  auto grow = [&](int64_t k, Id leaf) {
    const Id term = k == 1 ? leaf : s.pool.make(Op::mul, {s.pool.literal(expr::whole(k)), leaf});
    out = out ? s.pool.make(Op::add, {*out, term}) : term;
  };
  for (auto& [a, k] : f.axes) grow(k, s.pool.leaf(Op::coord, Type::index, a));
  for (auto& [r, k] : f.args) grow(k, s.pool.leaf(Op::arg, Type::index, r));
  const Id c = s.pool.literal(expr::whole(f.c.value()));
  if (!out) return {b, c};
  return {b, f.c.value() ? s.pool.make(Op::add, {*out, c}) : *out};
}

namespace {
thread_local std::vector<Builder*> open_builders;
} // namespace

Builder::Builder() : state_(std::make_unique<State>()) {
  state_->self = this;
  open_builders.push_back(this);
}

Builder::~Builder() { open_builders.erase(std::find(open_builders.begin(), open_builders.end(), this)); }

Builder* Builder::current() { return open_builders.empty() ? nullptr : open_builders.back(); }

Pool& Builder::surface_pool() { return state_->pool; }

Extent Builder::symbol(const std::string& name, SymbolFacts facts) {
  state_->g.symbols[name] = facts;
  return Extent::symbol(name);
}

namespace {
Tensor declare_input(Builder& b, const std::string& name, const std::vector<Extent>& shape, Format format,
                     Input::Kind kind, Where where) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d].is_constant() && shape[d].value() < 0)
      throw Error(where,
                  "input '" + name + "' has a negative dimension " + std::to_string(d) + ": " +
                      shape[d].text(),
                  {}, "dimensions are 0 or more");
  if (name.empty()) throw Error(where, "an input without a name", {}, "name it: inputs are bound by name");
  Input in{kind, shape, format};
  return {&b, {b.state().g.add({in, name, where}), 0}};
}
} // namespace

Tensor Builder::input(const std::string& name, const std::vector<Extent>& shape, Format format, Where where) {
  return declare_input(*this, name, shape, format, Input::data, where);
}

Tensor Builder::param(const std::string& name, const std::vector<Extent>& shape, Format format, Where where) {
  return declare_input(*this, name, shape, format, Input::param, where);
}

Tensor Builder::state(const std::string& name, const std::vector<Extent>& shape, Format format, Where where) {
  return declare_input(*this, name, shape, format, Input::state, where);
}

Tensor set_sorted(const Tensor& keys, Where where) {
  Graph& g = keys.builder->state().g;
  const Input* in = g[keys.port.node].input();
  if (!in || type_of(in->format) != Type::index || in->shape.empty())
    throw Error(where, keys.name() + " cannot be declared sorted",
                {{in ? "it holds " + std::string(expr::name(type_of(in->format))) + " values of rank " +
                           std::to_string(in->shape.size())
                     : "it is computed",
                  keys.where()}},
                "declare an input of an integer format with at least one dimension");
  for (NodeId id = keys.port.node + 1; id < g.nodes.size(); ++id)
    for (Port p : sources(g, id))
      if (p.node == keys.port.node)
        throw Error(where, keys.name() + " is declared sorted after it was read",
                    {{"read by " + g.label({id, 0}), g[id].where}}, "call set_sorted where it is declared");
  g.set_sorted(keys.port.node);
  return keys;
}

namespace {
std::string text_of(const std::vector<Extent>& shape, Type type) {
  std::string s;
  for (auto& e : shape) s += (s.empty() ? "" : ", ") + e.text();
  return "[" + s + "] of " + expr::name(type);
}

// An output with the name of a state is its new value and lands in its memory: shape, type and format are the
// state's.
Format format_of_state(const Graph& g, const Tensor& t, const std::string& name, Format format, Where where) {
  for (auto& n : g.nodes) {
    const Input* in = n.input();
    if (!in || n.name != name || &n == &g[t.port.node]) continue;
    if (in->kind != Input::state)
      throw Error(where, "output '" + name + "' has the name of an input",
                  {{"the input is declared here", n.where}},
                  "give it another name, or declare a state: an output of a state's name is its new value");
    if (t.shape() != in->shape || t.type() != type_of(in->format))
      throw Error(where, "the new value of state '" + name + "' has another shape or type",
                  {{"the value is " + text_of(t.shape(), t.type()), t.where()},
                   {"the state is " + text_of(in->shape, type_of(in->format)), n.where}},
                  "a state keeps its shape and type");
    if (format != Format::count_ && format != in->format)
      throw Error(where, "the new value of state '" + name + "' is to be " + row(format).name,
                  {{std::string("the state is ") + row(in->format).name, n.where}},
                  "leave the format out: a state keeps its own");
    return in->format;
  }
  return format == Format::count_ ? default_format(t.type()) : format;
}
} // namespace

void Builder::output(const Tensor& t, const std::string& name, Format format, Where where) {
  for (auto& o : state_->g.outputs)
    if (o.name == name)
      throw Error(where, "two outputs are called '" + name + "'", {}, "give each output its own name");
  format = format_of_state(state_->g, t, name, format, where);
  state_->g.outputs.push_back({t.port, name, format});
}

Graph Builder::graph() const {
  if (state_->instead.empty()) return canonical(state_->g).graph;
  Graph g = state_->g;
  redirect(g, state_->instead);
  return canonical(g).graph;
}

const std::vector<std::string>& Builder::warnings() const { return state_->warnings; }

} // namespace tang::ir
