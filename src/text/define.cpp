// Definitions of the language as people write it: maps, folds, output views, stores.
#include <algorithm>

#include "tang/text/evaluator.hpp"

namespace tang::text {

using namespace ir;

namespace {
bool is_bare(const Dim& d) {
  return d.at->kind == Expr::word && !d.at->name.quoted && !d.at->name.symbol && d.at->name.field.empty();
}

// Bare names of an expression that may be axes, in order.
void names_of(const Expr& e, std::vector<std::string>& out) {
  if (e.kind == Expr::word && !e.name.quoted && !e.name.symbol && e.name.field.empty())
    out.push_back(e.name.text);
  for (auto& a : e.args) names_of(*a, out);
}
} // namespace

// The port that `s` reads at exactly these axes, when there is one: then a definition only names it.
std::optional<Port> Evaluator::same_port(const Scalar& s, const std::vector<Axis>& axes) const {
  auto& st = m_.state();
  if (!s.builder() || st.pool[s.id()].op != Op::arg) return {};
  const auto& r = st.reads[size_t(st.pool[s.id()].whole)];
  if (r.view.size() != axes.size()) return {};
  const auto shape = st.g.shape(r.from);
  for (size_t d = 0; d < axes.size(); ++d) {
    if (!r.view[d].is_pick() || r.view[d].picked() != int(axes[d].id)) return {};
    if (auto it = st.axes.find(int(axes[d].id)); it == st.axes.end() || !(it->second.extent == shape[d]))
      return {};
  }
  return r.from;
}

std::vector<Port> define(Model& m, const std::vector<Token>& names, const std::vector<Dim>& dims,
                         const Expr& body, bool alias) {
  Evaluator v(m);
  auto& s = m.state();
  const Where where = names[0].where;
  // The points: bare names, and the axes of coordinates that are forms.
  std::vector<std::string> points;
  std::vector<Where> wheres;
  bool view = false;
  auto point = [&](const std::string& name, const Dim& d, const Dim* declared) {
    for (auto& p : points)
      if (p == name && declared)
        throw problem("T0205", d.where, "axis `" + shown(name) + "` is on the left twice",
                      {{"again here", d.where}}, "name each axis once");
    for (auto& p : points)
      if (p == name) return;
    Meaning x;
    if (declared)
      x.form = Index(v.open_axis(*declared));
    else if (!m.axes.count(name) && (s.g.symbols.count(name) || is_reserved(name) || m.tensors.count(name)))
      return;
    else
      x.form = Index(v.local(name, d.where));
    v.bind(name, x);
    points.push_back(name);
    wheres.push_back(d.where);
  };
  for (auto& d : dims) {
    if (is_bare(d)) {
      point(d.at->name.text, d, &d);
      continue;
    }
    view = true;
    std::vector<std::string> inside;
    names_of(*d.at, inside);
    for (auto& n : inside) point(n, d, nullptr);
  }
  Guard inside = always();
  const auto splits = v.split(points, body, inside);
  view |= !splits.empty();
  std::vector<Axis> axes;
  for (auto& p : points) {
    if (auto it = splits.find(p); it != splits.end()) {
      axes.push_back(it->second->outer);
      axes.push_back(it->second->inner);
    } else {
      axes.push_back(v.bound(p)->form->axes[0].first);
    }
  }
  const Expr* e = &body;
  const bool multiple = names.size() > 1;
  std::vector<Scalar> values;
  if (multiple) {
    values = e->kind == Expr::fold ? v.fold(*e) : v.terms(*e);
    if (values.size() != names.size())
      throw problem("T0305", where,
                    std::to_string(names.size()) + " names for " + std::to_string(values.size()) + " values",
                    {{std::to_string(values.size()) + " values", body.where}}, "give each component a name");
  } else {
    values.push_back(v.scalar(*e));
  }
  std::vector<Port> out;
  for (size_t k = 0; k < values.size(); ++k) {
    Scalar x = values[k];
    if (inside.pieces.size() != 1 || !inside.pieces[0].empty()) x = masked(inside, v.typed(x));
    const bool fold = e->kind == Expr::fold && e->name.text != "logsumexp";
    if ((fold || alias) && !view)
      if (auto p = v.same_port(x, axes)) { // the line is the fold
        if (fold && !multiple) s.g.nodes[p->node].name = names[k].text;
        out.push_back(*p);
        continue;
      }
    // Free axes of the value that the left side does not name.
    if (x.builder())
      for (int a : s.free_axes(x.id())) {
        bool named = false;
        for (auto& p : axes) named |= int(p.id) == a;
        if (!named)
          throw problem("T0204", body.where,
                        "axis `" + shown(s.axis_name(a)) + "` is neither on the left nor folded",
                        {{"free in this expression", body.where}},
                        "add it to the left side, or fold over it: sum[" + shown(s.axis_name(a)) + "] ..");
      }
    for (size_t a = 0; a < axes.size(); ++a) {
      v.domain(Guard{{{Index(axes[a])}}, where}); // registers the axis
      if (!s.axes.count(int(axes[a].id)))
        throw problem("T0203", a < wheres.size() ? wheres[a] : where,
                      "axis `" + shown(axes[a].name) + "` indexes no tensor, so it has no extent",
                      {{"named here", a < wheres.size() ? wheres[a] : where}},
                      "declare it: [" + shown(axes[a].name) + ": extent]");
    }
    if (!view) {
      out.push_back(
          within("T0203", body.where, [&] { return map(axes, v.typed(x), names[k].text, where); }).port);
      continue;
    }
    Coords coords;
    std::vector<Extent> shape;
    std::set<uint32_t> used;
    for (auto& d : dims) {
      const Index i = v.index(*d.at);
      if (!i.values.empty())
        throw problem("T0208", d.where, "an output coordinate depends on axes only",
                      {{"this one reads a tensor", d.where}}, "gather on the right side instead");
      // Mixed radix: each axis in one coordinate, each coefficient at least the span of the smaller ones.
      auto terms = i.axes;
      std::sort(terms.begin(), terms.end(),
                [](auto& x1, auto& x2) { return std::abs(x1.second) < std::abs(x2.second); });
      Extent span = 1, last = i.c;
      for (auto& term : terms) {
        const Axis& a = term.first;
        const int64_t c = term.second;
        const Extent n = s.axes.at(int(a.id)).extent;
        if (!used.insert(a.id).second || c < 0 ||
            !(within("T0208", d.where, [&] { return Extent(c) - span; }).range(s.g.symbols).first >= 0))
          throw problem(
              "T0208", d.where, "two points may land on one place of the output", {{"coordinate", d.where}},
              "as in C*i + j with j < C: each axis once, each factor at least the span of the smaller ones");
        last = within("T0210", d.where, [&] { return last + Extent(c) * (n - Extent(1)); });
        span = within("T0210", d.where, [&] { return Extent(c) * (n - Extent(1)) + span; });
      }
      coords.push_back(i);
      const bool split_axis = is_bare(d) && splits.count(d.at->name.text);
      if (d.extent && !is_bare(d))
        shape.push_back(m.extent_of(*d.extent));
      else if (split_axis)
        shape.push_back(v.split_extent.at(d.at->name.text));
      else
        shape.push_back(last + Extent(1));
    }
    for (auto& a : axes)
      if (!used.count(a.id) && !(s.axes.at(int(a.id)).extent == Extent(1)))
        throw problem("T0208", where, "axis `" + shown(a.name) + "` is in no output coordinate",
                      {{"the left side", where}}, "add it to one");
    out.push_back(within("T0208", where, [&] {
                    return map_at(axes, coords, shape, v.typed(x), names[k].text, where);
                  }).port);
  }
  return out;
}

void Model::definition(const Statement& s) {
  for (auto& n : s.names)
    if (tensors.count(n.text)) define(n, {}); // says where the first one is
  if (s.domain || !s.outs.empty())
    throw problem("T0008", s.where, "`where` and `to` belong to the exact form", {{"this line", s.where}},
                  "write `if` after the expression, and output views on the left");
  const auto ports = text::define(*this, s.names, s.dims, *s.value);
  for (size_t k = 0; k < s.names.size(); ++k) define(s.names[k], {ports[k]});
}

// cache[pos, d] := e  is  select(t == pos, e, cache[t, d])  at every t, under the state's name.
void Model::store(const Statement& s) {
  const Token& name = s.names[0];
  if (s.names.size() != 1)
    throw problem("T0404", name.where, "`:=` stores into one state", {{"several names here", name.where}},
                  "write one line a state");
  const Port old = port(name);
  if (!tensors.count(name.text) || !tensors.at(name.text).state)
    throw problem("T0404", name.where,
                  "`:=` stores into a donated state, and `" + shown(name.text) + "` is none",
                  {{"stored into here", name.where}}, "declare it: state " + shown(name.text) + "[..]");
  const auto shape = state().g.shape(old);
  if (shape.size() != s.dims.size())
    throw problem(
        "T0201", name.where, "`" + shown(name.text) + "` has " + std::to_string(shape.size()) + " dimensions",
        {{std::to_string(s.dims.size()) + " coordinates", name.where}}, "give one coordinate a dimension");
  Evaluator v(*this);
  std::vector<Axis> points;
  Guard hit = always();
  hit.where = name.where;

  struct Later {
    size_t dim;
    Axis at;
  };

  std::vector<Later> later;
  for (size_t d = 0; d < s.dims.size(); ++d) {
    const Dim& x = s.dims[d];
    const bool bare = is_bare(x) && !x.extent;
    const std::string n = bare ? x.at->name.text : "";
    if (bare && !v.bound(n) && !tensors.count(n) && !state().g.symbols.count(n) && !is_reserved(n)) {
      const bool known = axes.count(n);
      const Axis a = known ? v.local(n, x.where) : v.fresh(n, &shape[d], name.text, x.where);
      if (known && !(state().axes.at(int(a.id)).extent == shape[d]))
        throw problem(
            "T0217", x.where, "axis `" + shown(n) + "` has two lengths",
            {{shown(n) + " = " + shown(shape[d].text()) + " (" + shown(name.text) + ", dimension " +
                  std::to_string(d) + ")",
              x.where},
             {shown(n) + " = " + shown(state().axes.at(int(a.id)).extent.text()), axes.at(n).where}},
            "store a part as " + shown(name.text) + "[first + " + shown(n) + "]");
      Meaning axis_value;
      axis_value.form = Index(a);
      v.bind(n, axis_value);
      points.push_back(a);
    } else {
      points.push_back(v.fresh("at" + std::to_string(d), &shape[d], name.text, x.where));
      later.push_back({d, points.back()});
    }
  }
  // first + i is solved for i; anything without an axis is a test.
  for (auto& l : later) {
    const Dim& x = s.dims[l.dim];
    std::vector<std::string> inside;
    names_of(*x.at, inside);
    std::string solved;
    Axis stored;
    for (auto& n : inside)
      if (!v.bound(n) && axes.count(n)) {
        if (!solved.empty())
          throw problem("T0404", x.where, "a stored coordinate has at most one axis of its own",
                        {{"here", x.where}}, "store one row at a time");
        solved = n;
        stored = v.local(n, x.where);
        Meaning a;
        a.form = Index(stored);
        v.bind(n, a);
      }
    const Index at = v.index(*x.at);
    if (solved.empty()) {
      if (!at.axes.empty())
        throw problem("T0404", x.where, "a stored coordinate may not repeat an axis", {{"here", x.where}},
                      "use an axis of its own");
      const Index up = minus(at, Index(l.at), x.where), down = minus(Index(l.at), at, x.where);
      hit = hit && Guard{{{up, down}}, x.where};
      continue;
    }
    if (at.axes.size() != 1 || at.axes[0].second != 1)
      throw problem("T0404", x.where, "a stored coordinate is first + axis", {{"here", x.where}},
                    "use factor 1");
    const Index rest = minus(at, Index(stored), x.where);
    Meaning back;
    back.form = minus(Index(l.at), rest, x.where); // the axis, solved
    const Extent n = state().axes.at(int(stored.id)).extent;
    hit = hit && Guard{{{*back.form, minus(Index(n + Extent(-1)), *back.form, x.where)}}, x.where};
    v.unbind(solved);
    v.bind(solved, back);
  }
  const Type type = state().g.type(old);
  const Scalar now = v.literal(v.scalar(*s.value), type, *s.value);
  if (now.type() != type)
    throw problem("T0301", s.value->where, "`" + shown(name.text) + "` holds " + expr::name(type) + " values",
                  {{expr::name(now.type()), s.value->where}},
                  std::string("convert the value: ") + expr::name(type) + "(..)");
  const Tensor made = within("T0404", name.where, [&] {
    Coords coords(points.begin(), points.end());
    const Scalar kept = Tensor{&builder, old}.at(coords, name.where);
    const bool all = hit.pieces[0].empty();
    return map(points, all ? now : select(as_scalar(hit, kept), now, kept), name.text, name.where);
  });
  define(name, {made.port}, true);
  for (auto& o : outputs)
    if (o.name == name.text) {
      o.port = made.port;
      return;
    }
  const Input* in = nullptr;
  for (auto& node : state().g.nodes)
    if (node.name == name.text && node.input()) in = node.input();
  outputs.push_back({name.text, made.port, in ? in->format : default_format(type)});
}

} // namespace tang::text
