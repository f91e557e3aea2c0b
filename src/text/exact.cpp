// The exact form: a line is a node as it stands, with nothing added, moved or merged.
#include "tang/ir/absence.hpp"
#include "tang/text/evaluator.hpp"

namespace tang::text {

using namespace ir;
using expr::Term;

namespace {
// A term and its reads, from the builder's pool over axis ids into a node over axis positions.
struct Node_of {
  Builder::State& s;
  std::map<int, int> place;
  Where where;
  Comp n = {};
  std::map<int, int> taken = {};

  Form moved(const Form& f) {
    return compose(
        f,
        [&](int a) {
          auto it = place.find(a);
          if (it == place.end())
            throw problem("T0204", where, "axis `" + shown(s.axis_name(a)) + "` is not of this node",
                          {{"used in this line", where}}, "name it on the left or in the fold");
          return axis(it->second);
        },
        [&](int r) { return uniform(take(r)); });
  }

  int take(int r) {
    if (auto it = taken.find(r); it != taken.end()) return it->second;
    Arg a{s.reads[size_t(r)].from, {}};
    const std::vector<Form> view = s.reads[size_t(r)].view;
    for (auto& f : view) a.view.push_back(moved(f));
    n.args.push_back(std::move(a));
    return taken[r] = int(n.args.size()) - 1;
  }

  Domain moved(const Domain& d) {
    return ir::moved(d, [&](const Form& f) { return moved(f); });
  }

  Id term(Id e) {
    return expr::transplant(s.pool, e, s.g.pool, [&](const Term& t) -> Id {
      if (t.op == Op::coord) return s.g.pool.leaf(Op::coord, Type::index, moved(axis(int(t.whole))).picked());
      if (t.op == Op::holds) {
        n.guards.push_back(moved(s.guards[size_t(t.whole)]));
        return s.g.pool.leaf(Op::holds, Type::boolean, int64_t(n.guards.size()) - 1);
      }
      return s.g.pool.leaf(Op::arg, t.type, take(int(t.whole)));
    });
  }
};

// Every component of a fold has the axes with which its terms move, with which they exist, and those of the
// components that its combine reads.
void complete(const Node_of& node, const Statement& s) {
  const Comp& n = node.n;
  std::map<int, int> named; // by position
  for (auto& [id, at] : node.place) named[at] = id;
  for (size_t c = 0; c < n.lift.size(); ++c) {
    std::set<int> needed = points_of_term(node.s.g.pool, n, c);
    needed.merge(points_of_domain(n));
    for (Id v : expr::subterms(node.s.g.pool, n.monoid->combine[c], Op::var))
      for (int a : n.outs[size_t(node.s.g.pool[v].whole) / 2].axes) needed.insert(a);
    for (int a : n.outs[c].axes) needed.erase(a);
    if (needed.empty()) continue;
    const std::string axis = "`" + shown(node.s.axis_name(named.at(*needed.begin()))) + "`";
    throw problem("T0204", s.where,
                  "component " + std::to_string(c) + " has no axis " + axis +
                      ", with which its terms or their domain move",
                  {{"stored over fewer axes here", s.where}}, "name " + axis + " after `to`");
  }
}
} // namespace

void Model::line(const Statement& s) {
  const Token& name = s.names[0];
  if (s.names.size() != 1)
    throw problem("T0701", name.where, "a node has one name", {{"several here", name.where}},
                  "name.0, name.1 are its components");
  if (tensors.count(name.text)) define(name, {});
  Evaluator v(*this);
  Builder::State& st = state();
  Node_of node{st, {}, s.value->where};
  auto open = [&](const std::vector<Dim>& dims, std::vector<Extent>& extents) {
    for (auto& d : dims) {
      const Axis a = v.open_axis(d);
      if (v.bound(d.at->name.text))
        throw problem("T0205", d.where, "axis `" + shown(a.name) + "` is named twice",
                      {{"again here", d.where}}, "name each axis once");
      node.place.emplace(int(a.id), int(node.place.size()));
      extents.push_back(st.extent(int(a.id), d.where));
      Meaning x;
      x.form = Index(a);
      v.bind(d.at->name.text, x);
    }
  };
  open(s.dims, node.n.points);
  const Expr* body = s.value.get();
  const Expr* fold = body->kind == Expr::fold ? body : nullptr;
  if (fold) {
    open(fold->axes, node.n.folds);
    body = fold->args[0].get();
  }
  if (body->kind == Expr::let) { // its names are in view of `where` too
    v.let(*body);
    body = body->args[0].get();
  }
  std::vector<Scalar> lift;
  std::vector<const Expr*> from;
  if (body->kind == Expr::tuple)
    for (auto& a : body->args) from.push_back(a.get());
  else
    from.push_back(body);
  for (auto* e : from) lift.push_back(v.scalar(*e));
  if (fold) {
    const MonoidSpec spec = v.monoid(fold->name, lift.size(), false);
    v.fit(spec, lift, from, *body, fold->name.text);
    Monoid& m = node.n.monoid.emplace();
    m.name = spec.name;
    m.identity = spec.identity;
    m.commutative = spec.commutative;
    std::vector<expr::E> left, right;
    for (size_t c = 0; c < spec.identity.size(); ++c) {
      left.push_back({&st.g.pool, st.g.pool.leaf(Op::var, m.identity[c].type, int64_t(2 * c))});
      right.push_back({&st.g.pool, st.g.pool.leaf(Op::var, m.identity[c].type, int64_t(2 * c + 1))});
    }
    for (auto& e : spec.combine(st.g.pool, left, right)) m.combine.push_back(e.id);
  }
  Domain domain = everywhere();
  if (s.domain) {
    node.where = s.domain->where;
    if (s.domain->kind == Expr::guard && s.domain->name.text == "never")
      domain = {};
    else
      domain = v.domain(v.guard(*s.domain));
    domain = node.moved(domain);
    node.where = s.value->where;
  }
  for (auto& l : lift) node.n.lift.push_back(node.term(v.typed(l).id()));
  node.n.domain = domain;
  for (size_t c = 0; c < lift.size(); ++c) {
    Out o;
    if (s.outs.empty()) {
      for (size_t k = 0; k < node.n.points.size(); ++k) o.axes.push_back(int(k));
      node.n.outs.push_back(o);
      continue;
    }
    if (s.outs.size() != lift.size())
      throw problem("T0305", s.where,
                    std::to_string(s.outs.size()) + " stores for " + std::to_string(lift.size()) +
                        " components",
                    {{"after `to`", s.where}}, "give one a component");
    for (auto& d : s.outs[c].axes) {
      const Index i = v.index(*d.at);
      const bool point = i.axes.size() == 1 && i.values.empty() &&
                         node.place.count(int(i.axes[0].first.id)) &&
                         size_t(node.place.at(int(i.axes[0].first.id))) < node.n.points.size();
      if (!point)
        throw problem("T0204", d.where, "`to` lists point axes", {{"this is none", d.where}},
                      "name axes of the left side");
      o.axes.push_back(node.place.at(int(i.axes[0].first.id)));
    }
    for (auto& d : s.outs[c].view) {
      if (!d.extent)
        throw problem("T0203", d.where, "an output coordinate without its extent", {{"here", d.where}},
                      "[coordinate: extent]");
      const Index i = v.index(*d.at);
      if (!i.values.empty())
        throw problem("T0208", d.where, "an output coordinate depends on axes only",
                      {{"this one reads a tensor", d.where}}, "use axes");
      node.where = d.where;
      const Form f = st.form(i, d.where);
      o.view.push_back(node.moved(f));
      o.shape.push_back(extent_of(*d.extent));
    }
    node.n.outs.push_back(std::move(o));
  }
  if (fold) complete(node, s);
  const NodeId id = st.g.add({std::move(node.n), name.text, s.where});
  std::vector<Port> ports;
  for (size_t c = 0; c < lift.size(); ++c) ports.push_back({id, uint32_t(c)});
  define(name, ports);
}

namespace {
// Coordinates over time (position 0) and the named local axes (1 ..).
std::vector<Form> views(Model& m, const Token& over, const std::vector<Dim>& locals,
                        const std::vector<Dim>& view, std::vector<Extent>* shape) {
  Evaluator v(m);
  std::map<uint32_t, int> place;
  auto name = [&](const std::string& n, Where where) {
    const Axis a = v.fresh(n, nullptr, "", where);
    place.emplace(a.id, int(place.size()));
    Meaning x;
    x.form = Index(a);
    v.bind(n, x);
  };
  name(over.text, over.where);
  for (auto& d : locals) {
    if (d.at->kind != Expr::word || d.at->name.quoted)
      throw problem("T0004", d.where, "expected the name of an axis", {{"here", d.where}},
                    "name each local axis");
    name(d.at->name.text, d.where);
  }
  std::vector<Form> out;
  for (auto& d : view) {
    const Index i = v.index(*d.at);
    if (!i.values.empty())
      throw problem("T0503", d.where, "a view of a recurrence depends on axes only",
                    {{"this one reads a tensor", d.where}}, "use the time and the local axes");
    Form f = constant(i.c);
    for (auto& [a, k] : i.axes) {
      if (!place.count(a.id))
        throw problem("T0204", d.where, "axis `" + shown(a.name) + "` is not in view here",
                      {{"used here", d.where}}, "use the time and the local axes");
      f = f + axis(place.at(a.id), k);
    }
    out.push_back(f);
    if (shape) {
      if (!d.extent)
        throw problem("T0203", d.where, "an emitted coordinate without its extent", {{"here", d.where}},
                      "[coordinate: extent]");
      shape->push_back(m.extent_of(*d.extent));
    }
  }
  return out;
}
} // namespace

void Model::recur_exact(Statement& s) {
  const Token& name = s.names[0];
  if (s.names.size() != 1)
    throw problem("T0701", name.where, "a node has one name", {{"several here", name.where}},
                  "name.0, name.1 are its components");
  if (tensors.count(name.text)) define(name, {});
  Recur r;
  r.steps = extent_of(*s.extent);
  r.reverse = s.down;
  if (s.domain) {
    if (s.domain->kind == Expr::guard && s.domain->name.text == "never") {
      r.live = {};
    } else {
      Evaluator v(*this);
      const Axis t = v.fresh(s.over.text, &r.steps, "its declaration", s.over.where);
      Meaning x;
      x.form = Index(t);
      v.bind(s.over.text, x);
      const Guard g = v.guard(*s.domain);
      r.live = ir::moved(v.domain(g), [&](const Form& f) {
        if (!f.args.empty())
          throw problem("T0503", s.domain->where, "when a step is live depends on the time only",
                        {{"this reads a tensor", s.domain->where}}, "select the old state inside the step");
        return compose(f, [&](int a) {
          if (a != int(t.id))
            throw problem("T0503", s.domain->where, "when a step is live depends on the time only",
                          {{"another axis here", s.domain->where}}, "use the time axis");
          return ir::axis(0);
        });
      });
    }
  }
  Model step(file, true, nullptr, monoids, problems);
  step.state().g.symbols = state().g.symbols;
  std::vector<Statement> inner, parts;
  for (auto& b : s.block) {
    const bool part = b.kind == Statement::time || b.kind == Statement::arg || b.kind == Statement::carried ||
                      (b.kind == Statement::emit && !b.value);
    (part ? parts : inner).push_back(std::move(b));
  }
  const size_t before = problems.size();
  step.run(inner);
  if (problems.size() != before) throw Silent{};
  auto& g = step.state().g;
  auto input_of = [&](const Token& t) {
    const Port p = step.port(t);
    if (!g[p.node].input())
      throw problem("T0501", t.where, "`" + shown(t.text) + "` is no input of the step",
                    {{"used here", t.where}}, "declare it in the step: input " + shown(t.text));
    return p.node;
  };
  auto ranked = [&](const Token& t, size_t want, size_t have) {
    if (want != have)
      throw problem("T0201", t.where,
                    "`" + shown(t.text) + "` has " + std::to_string(want) +
                        (want == 1 ? " dimension" : " dimensions"),
                    {{std::to_string(have) + " here", t.where}}, "name one axis a dimension");
  };
  auto equal = [&](const Token& t, const std::vector<Extent>& a, const std::vector<Extent>& b, Type x,
                   Type y) {
    if (!(a == b) || x != y)
      throw problem("T0501", t.where, "the shape or type of `" + shown(t.text) + "` differs from its state's",
                    {{"here", t.where}}, "a state keeps its shape and type");
  };
  bool timed = false;
  for (auto& p : parts) {
    const Token& t = p.names[0];
    if (p.kind == Statement::time) {
      r.time = input_of(t);
      if (timed || !g.shape({r.time, 0}).empty() || g.type({r.time, 0}) != Type::index)
        throw problem("T0501", t.where, "the time is one input of rank 0 and type index", {{"here", t.where}},
                      "input t : i32");
      timed = true;
    } else if (p.kind == Statement::carried) {
      Recur::State x;
      x.in = input_of(t);
      const auto shape = g.shape({x.in, 0});
      const Type type = g.type({x.in, 0});
      if (p.sources[0].kind == Token::name) {
        x.init = port(p.sources[0]);
        equal(p.sources[0], state().g.shape(*x.init), shape, state().g.type(*x.init), type);
      }
      x.out = step.port(p.sources[1]);
      equal(p.sources[1], g.shape(x.out), shape, g.type(x.out), type);
      r.states.push_back(x);
    } else if (p.kind == Statement::arg) {
      Recur::Read x;
      x.in = input_of(t);
      x.from = port(p.sources[0]);
      ranked(t, g.shape({x.in, 0}).size(), p.dims.size());
      x.view = views(*this, s.over, p.dims, p.outs[0].view, nullptr);
      ranked(p.sources[0], state().g.shape(x.from).size(), x.view.size());
      if (state().g.type(x.from) != g.type({x.in, 0})) equal(p.sources[0], {}, {}, Type::real, Type::index);
      r.args.push_back(std::move(x));
    } else {
      Recur::Emit x;
      x.out = step.port(t);
      ranked(t, g.shape(x.out).size(), p.dims.size());
      x.view = views(*this, s.over, p.dims, p.outs[0].view, &x.shape);
      r.emits.push_back(std::move(x));
    }
  }
  if (!timed)
    throw problem("T0501", s.where, "a recurrence without its time", {{"this one", s.where}},
                  "add to its block: input t : i32, and time t");
  for (auto& o : step.outputs) g.outputs.push_back({o.port, o.name, o.format});
  r.step = std::make_shared<const Graph>(std::move(g));
  const size_t ports = r.states.size() + r.emits.size();
  const NodeId id = state().g.add({std::move(r), name.text, s.where});
  std::vector<Port> all;
  for (size_t k = 0; k < ports; ++k) all.push_back({id, uint32_t(k)});
  define(name, all);
}

} // namespace tang::text
