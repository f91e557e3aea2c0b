#include "tang/text/evaluator.hpp"

#include <cmath>
#include <limits>

#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"

namespace tang::text {

using namespace ir;

namespace {
constexpr double most_exact = 9007199254740992.0; // whole numbers up to here are exact in f64

[[noreturn]] void overflow(Where where) {
  throw problem("T0210", where, "a coordinate does not fit in 64 bits", {}, "use smaller factors");
}

template <class K, class Same>
void merge(std::vector<std::pair<K, int64_t>>& a, const std::pair<K, int64_t>& t, Same same, Where where) {
  for (auto it = a.begin(); it != a.end(); ++it)
    if (same(it->first, t.first)) {
      const auto k = add_checked(it->second, t.second);
      if (!k || *k == INT64_MIN) overflow(where);
      if ((it->second = *k) == 0) a.erase(it);
      return;
    }
  a.push_back(t);
}
} // namespace

Index plus(const Index& a, const Index& b, Where where) {
  Index out = a;
  out.c = within("T0210", where, [&] { return a.c + b.c; });
  for (auto& t : b.axes)
    merge(
        out.axes, t, [](const Axis& x, const Axis& y) { return x.id == y.id; }, where);
  for (auto& t : b.values)
    merge(
        out.values, t, [](const Scalar& x, const Scalar& y) { return x.id() == y.id(); }, where);
  return out;
}

Index times(const Index& a, int64_t k, Where where) {
  if (!k) return Index(0);
  Index out = a;
  auto scale = [&](int64_t& c) {
    const auto p = mul_checked(c, k);
    if (!p || *p == INT64_MIN) overflow(where);
    c = *p;
  };
  out.c = within("T0210", where, [&] { return Extent(k) * a.c; });
  for (auto& t : out.axes) scale(t.second);
  for (auto& t : out.values) scale(t.second);
  return out;
}

Meaning number_value(double v) {
  Meaning out;
  out.scalar = Scalar(v);
  if (v == std::floor(v) && std::fabs(v) <= most_exact && !(v == 0 && std::signbit(v)))
    out.form = Index(int64_t(v));
  return out;
}

const Meaning* Evaluator::bound(const std::string& name) const {
  auto it = scope_.find(name);
  return it == scope_.end() || it->second.empty() ? nullptr : &it->second.back();
}

Axis Evaluator::fresh(const std::string& name, const Extent* extent, const std::string& who, Where where) {
  Axis a{fresh_axis(), name};
  auto& s = m_.state();
  s.axis_names.emplace(int(a.id), name);
  if (extent) s.declare(a, *extent, who, where, true);
  return a;
}

Axis Evaluator::open_axis(const Dim& d) {
  const Expr& e = *d.at;
  if (e.kind != Expr::word || e.name.quoted || e.name.symbol || !e.name.field.empty())
    throw problem("T0004", e.where, "expected the name of an axis", {{"this is no name", e.where}},
                  "name the axis: [i], or [i: extent]");
  const std::string& name = e.name.text;
  if (is_reserved(name))
    throw problem("T0107", e.where, "`" + name + "` is a word of the language",
                  {{"used as an axis here", e.where}}, "choose another name");
  if (d.extent) {
    const Extent n = m_.extent_of(*d.extent);
    return fresh(name, &n, "its declaration", d.where);
  }
  if (m_.exact)
    throw problem("T0203", e.where, "an axis without an extent",
                  {{"in the exact form every axis has one", e.where}}, "[" + shown(name) + ": extent]");
  if (auto* v = bound(name); v && v->is_axis()) return v->form->axes[0].first;
  return local(name, e.where);
}

// The axes of a statement are its own, in the order in which it names them: the order of a fold's points
// follows.
Axis Evaluator::local(const std::string& name, Where where) {
  const Axis a = fresh(name, nullptr, "", where);
  if (m_.time == name)
    throw problem("T0503", where, "the time `" + shown(name) + "` is one moment inside the step",
                  {{"named as an axis here", where}},
                  "leave it out of the left side: the step runs once for each time");
  auto& s = m_.state();
  if (auto it = m_.axes.find(name); it != m_.axes.end())
    if (auto known = s.axes.find(int(it->second.axis.id)); known != s.axes.end())
      s.axes.emplace(int(a.id), known->second);
  return a;
}

void Evaluator::limit(const Scalar& s, Where where) {
  if (!s.builder()) return;
  const Pool& p = m_.state().pool;
  auto& d = m_.depths;
  while (d.size() < p.size()) {
    const auto& t = p[Id(d.size())];
    uint32_t deepest = 0;
    for (int k = 0; k < t.arity(); ++k) deepest = std::max(deepest, d[t.args[size_t(k)]]);
    d.push_back(deepest + 1);
  }
  const uint32_t most = m_.exact ? 8000 : 1000;
  if (d[s.id()] > most)
    throw problem("T0006", where,
                  "a term of more than " + std::to_string(most) + " operations one inside the other", {},
                  "store a part of it on a line of its own");
}

Meaning Evaluator::wrap(const Scalar& s) {
  Meaning v;
  v.scalar = s;
  if (s.builder() && s.type() == Type::index && m_.state().pool[s.id()].op == Op::arg) v.form = Index(s);
  return v;
}

Scalar Evaluator::typed(const Scalar& s) {
  return s.builder() ? s : Scalar(&m_.builder, m_.state().pool.literal(s.constant()));
}

Scalar Evaluator::literal(const Scalar& s, Type type, const Expr& e) {
  if (s.builder()) return s;
  if (type == Type::real) return typed(s);
  const double v = s.constant();
  if (type == Type::boolean)
    throw problem("T0303", e.where, "a number where a condition is needed", {{shortest(v), e.where}},
                  "compare it with something, or write true or false");
  if (v != std::floor(v) || std::fabs(v) > most_exact)
    throw problem("T0304", e.where, shortest(v) + " is no whole number of type " + expr::name(type),
                  {{std::string("its partner is of type ") + expr::name(type), e.where}},
                  "convert the partner: real(..), or write a whole number");
  return Scalar(&m_.builder, m_.state().pool.number(v, type));
}

std::vector<std::string> Evaluator::names_in_view() const {
  std::vector<std::string> out;
  for (auto& [n, v] : scope_)
    if (!v.empty()) out.push_back(n);
  for (const Model* m = &m_; m; m = m->outer) {
    for (auto& [n, v] : m->axes) out.push_back(n);
    for (auto& [n, v] : m->tensors) out.push_back(n);
  }
  for (auto& [n, v] : m_.state().g.symbols) out.push_back(n);
  return out;
}

void Evaluator::unknown(const Token& t, const char* what) {
  for (Model* m = &m_; m; m = m->outer)
    if (m->broken.count(t.text)) throw Silent{};
  const std::string near = nearest(t.text, names_in_view());
  throw problem("T0101", t.where, std::string("no ") + what + " is called `" + shown(t.text) + "`",
                {{"used here", t.where}},
                near.empty() ? "declare it: input " + shown(t.text) + "[..], sym " + shown(t.text) +
                                   ", or define it on a line above"
                             : "did you mean `" + shown(near) + "`?");
}

Meaning Evaluator::value(const Expr& e) {
  switch (e.kind) {
  case Expr::number: {
    const Token& t = e.name;
    if (!t.suffix) return number_value(t.real);
    Meaning v;
    if (t.suffix == 'i' && t.whole > uint64_t(INT64_MAX))
      throw problem("T0003", e.where, "an index value beyond 2^63 - 1", {{"this one", e.where}},
                    "use MAX for the largest");
    v.scalar = Scalar(&m_.builder, m_.state().pool.literal(t.suffix == 'i' ? expr::whole(int64_t(t.whole))
                                                                           : expr::bits(int64_t(t.whole))));
    if (t.suffix == 'i') v.form = Index(int64_t(t.whole));
    return v;
  }
  case Expr::word: return name(e);
  case Expr::read: return read(e);
  case Expr::call: return call(e);
  case Expr::fold: {
    if (m_.exact)
      throw problem("T0701", e.where, "a fold inside an expression",
                    {{"in the exact form every line is one node", e.where}},
                    "give the fold a line of its own, or leave `exact` out");
    const auto s = fold(e);
    if (s.size() != 1)
      throw problem("T0305", e.where,
                    "a fold of " + std::to_string(s.size()) + " components where one value is needed",
                    {{"each component is a value", e.where}},
                    "name them: let (a, b) = fold .. in .., or (a, b)[axes] = fold ..");
    return wrap(s[0]);
  }
  case Expr::chain: return chain(e);
  case Expr::compare: return compare(e);
  case Expr::mask: return mask(e);
  case Expr::unary: return unary(e);
  case Expr::let: {
    let(e);
    Meaning v = value(*e.args[0]);
    unlet(e);
    return v;
  }
  case Expr::guard: {
    Meaning v;
    Guard g = always();
    if (e.args.empty()) {
      if (e.name.text == "never") g.pieces.clear();
    } else {
      g = guard(*e.args[0]);
    }
    g.where = e.where;
    v.scalar = as_scalar(g, Scalar(&m_.builder, m_.state().pool.literal(0.0)));
    return v;
  }
  case Expr::tuple: break;
  }
  throw problem("T0305", e.where, "several values where one is needed", {{"these", e.where}},
                "only a fold takes a list: fold name[axes] (a, b)");
}

void Evaluator::let(const Expr& e) {
  for (auto& b : e.bindings) {
    if (b.names.size() == 1) {
      bind(b.names[0].text, value(*b.value));
      continue;
    }
    const auto s = b.value->kind == Expr::fold ? fold(*b.value) : terms(*b.value);
    if (s.size() != b.names.size())
      throw problem("T0305", b.names[0].where,
                    std::to_string(b.names.size()) + " names for " + std::to_string(s.size()) + " values",
                    {{std::to_string(s.size()) + " values", b.value->where}}, "give each value a name");
    for (size_t k = 0; k < s.size(); ++k) bind(b.names[k].text, wrap(s[k]));
  }
}

void Evaluator::unlet(const Expr& e) {
  for (auto& b : e.bindings)
    for (auto& n : b.names) unbind(n.text);
}

std::vector<Scalar> Evaluator::terms(const Expr& e) {
  std::vector<Scalar> out;
  if (e.kind == Expr::tuple)
    for (auto& a : e.args) out.push_back(scalar(*a));
  else if (e.kind == Expr::let) {
    let(e);
    out = terms(*e.args[0]);
    unlet(e);
  } else
    out.push_back(scalar(e));
  return out;
}

Scalar Evaluator::scalar(const Expr& e) { return scalar(value(e), e); }

Scalar Evaluator::scalar(const Meaning& v, const Expr& e) {
  if (v.scalar) return *v.scalar;
  if (v.guard) {
    Guard g = *v.guard;
    g.where = e.where;
    return within("T0309", e.where,
                  [&] { return as_scalar(g, Scalar(&m_.builder, m_.state().pool.literal(0.0))); });
  }
  if (v.is_extent())
    throw problem("T0312", e.where, "the extent " + shown(v.form->c.text()) + " is no value of an expression",
                  {{"it is known only when the graph is bound", e.where}}, "count it: real(count[axis] 1)");
  throw problem("T0302", e.where, "an axis is a coordinate, not a value", {{"used as a value here", e.where}},
                "write iota i for its index value, or real(i) for a real one");
}

Scalar Evaluator::condition(const Expr& e) { return condition(value(e), e); }

Scalar Evaluator::condition(const Meaning& v, const Expr& e) {
  if (v.guard && !v.scalar) return scalar(v, e);
  if (v.scalar && v.scalar->builder() && v.scalar->type() == Type::boolean) return *v.scalar;
  if (!v.scalar && !v.guard) return scalar(v, e);
  throw problem("T0303", e.where, "a condition is needed",
                {{std::string("this is ") + (v.scalar->builder() ? expr::name(v.scalar->type()) : "a number"),
                  e.where}},
                "compare it with something: x > 0");
}

Index Evaluator::index(const Expr& e) { return index(value(e), e); }

Index Evaluator::index(const Meaning& v, const Expr& e) {
  if (v.form) return *v.form;
  if (v.scalar && v.scalar->builder() && v.scalar->type() == Type::index) {
    if (m_.exact)
      throw problem("T0701", e.where, "a computed coordinate",
                    {{"in the exact form coordinates are sums of axes and reads", e.where}},
                    "store it on a line of its own, or leave `exact` out");
    return Index(*v.scalar);
  }
  if (v.is_plain() && e.kind == Expr::number && e.name.real == std::floor(e.name.real))
    throw problem("T0207", e.where, "a coordinate or extent that is too large", {{"this is beyond 2^53", e.where}},
                  "use a smaller one");
  const char* what = v.guard                           ? "a condition"
                     : v.scalar && v.scalar->builder() ? expr::name(v.scalar->type())
                                                       : "a fraction";
  throw problem("T0207", e.where, "a coordinate or extent must be a whole number",
                {{std::string("this is ") + what, e.where}},
                v.is_plain() || v.guard ? "use whole numbers and axes" : "convert it: index(..)");
}

Guard Evaluator::guard(const Expr& e) {
  const Meaning v = value(e);
  if (v.guard) return *v.guard;
  throw problem("T0303", e.where, "bounds are comparisons of axes, index reads and whole numbers",
                {{"this is none", e.where}},
                "write a bound such as j <= i; put conditions on data outside the braces");
}

Domain Evaluator::domain(const Guard& g) {
  Domain out;
  for (auto& piece : g.pieces) {
    Conj c;
    for (auto& i : piece) insert(c, m_.state().form(i, g.where));
    out.push_back(std::move(c));
  }
  return normal(std::move(out));
}

// ---- names and reads
// ------------------------------------------------------------------------------------------------
Meaning Evaluator::name(const Expr& e) {
  const Token& t = e.name;
  Meaning out;
  if (!t.quoted && !t.symbol && t.field.empty()) {
    if (t.text == "true" || t.text == "false") {
      out.scalar = Scalar(&m_.builder, m_.state().pool.literal(expr::truth(t.text == "true")));
      return out;
    }
    if (t.text == "inf") return number_value(std::numeric_limits<double>::infinity());
    if (t.text == "nan") return number_value(double_of(0x7ff8000000000000u));
    if (t.text == "MAX") {
      out.scalar = index_literal(m_.builder, INT64_MAX);
      out.form = Index(INT64_MAX);
      return out;
    }
  }
  if (!t.quoted && !t.symbol) {
    if (auto* v = bound(t.field.empty() ? t.text : t.text + "." + t.field)) return *v;
    if (auto it = m_.axes.find(t.text); it != m_.axes.end() && t.field.empty()) {
      out.form = Index(it->second.axis);
      return out;
    }
  }
  if (!t.symbol && m_.knows(t.text)) return read(e);
  if (t.field.empty() && (t.symbol || !t.quoted) && m_.state().g.symbols.count(t.text)) {
    out.form = Index(Extent::symbol(t.text));
    return out;
  }
  unknown(t, t.symbol ? "symbol" : "tensor, axis or symbol");
}

void Evaluator::check_lengths(const Expr& e, const std::vector<Index>& coords,
                              const std::vector<Extent>& shape, const std::string& tensor) {
  auto& s = m_.state();
  for (size_t d = 0; d < coords.size(); ++d) {
    const Index& i = coords[d];
    if (!(i.axes.size() == 1 && i.axes[0].second == 1 && i.values.empty() && i.c == Extent(0))) continue;
    auto it = s.axes.find(int(i.axes[0].first.id));
    if (it == s.axes.end() || it->second.declared || it->second.extent == shape[d]) continue;
    const std::string name = shown(s.axis_name(it->first));
    throw problem("T0217", e.args[d]->where, "axis `" + name + "` has two lengths",
                  {{name + " = " + shown(it->second.extent.text()) + " (" + shown(it->second.who) + ")",
                    it->second.where},
                   {name + " = " + shown(shape[d].text()) + " (" + shown(tensor) + ", dimension " +
                        std::to_string(d) + ")",
                    e.args[d]->where}},
                  "use two axes, or declare the shorter one where it is used: [" + name +
                      ": extent] reads a part");
  }
}

Meaning Evaluator::read(const Expr& e) {
  std::vector<Index> coords;
  for (auto& a : e.args) {
    if (a->kind == Expr::word && !a->name.quoted && !a->name.symbol && a->name.field.empty() &&
        !bound(a->name.text) && !m_.axes.count(a->name.text) && !m_.knows(a->name.text) &&
        !m_.state().g.symbols.count(a->name.text) && !is_reserved(a->name.text) && m_.knows(e.name.text)) {
      const std::string near = nearest(a->name.text, names_in_view());
      for (Model* m = &m_; m; m = m->outer)
        if (m->broken.count(a->name.text)) throw Silent{};
      throw problem("T0204", a->where, "axis `" + shown(a->name.text) + "` is neither on the left nor folded",
                    {{"used here", a->where}},
                    "add it to the left side, or fold over it: sum[" + shown(a->name.text) + "] ..");
    }
    coords.push_back(index(*a));
  }
  return read(e, coords, false);
}

Meaning Evaluator::read(const Expr& e, const std::vector<Index>& given, bool in_range) {
  const Token& t = e.name;
  if (t.symbol || !m_.knows(t.text)) unknown(t, "tensor");
  const std::vector<Index>& coords = given;
  const Tensor tensor = m_.tensor(t);
  const auto shape = tensor.shape();
  if (shape.size() != coords.size()) {
    std::string dims;
    for (auto& x : shape) dims += (dims.empty() ? "" : ", ") + x.text();
    const Where at = tensor.builder->state().g[tensor.port.node].where;
    std::vector<Note> facts{
        {std::to_string(coords.size()) + (coords.size() == 1 ? " coordinate" : " coordinates"), e.where}};
    facts.push_back({"has shape [" + shown(dims) + "]", at});
    throw problem("T0201", e.where,
                  "`" + shown(t.text) + "` has " + std::to_string(shape.size()) +
                      (shape.size() == 1 ? " dimension" : " dimensions"),
                  facts, "give one coordinate a dimension: " + shown(t.text) + "[..]");
  }
  if (e.kind == Expr::read) check_lengths(e, coords, shape, t.text);
  return wrap(within("T0202", e.where, [&]() -> Scalar {
    if (in_range) return tensor.where_in_range(coords, e.where);
    return tensor.at(coords, e.where);
  }));
}

} // namespace tang::text
