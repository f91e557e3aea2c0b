// Declarations, and the dispatch of statements; definitions are in define.cpp, exact lines in exact.cpp.
#include <algorithm>

#include "tang/grad/surface.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/text/evaluator.hpp"

namespace tang::text {

using namespace ir;

namespace {
std::vector<std::string> format_names() {
  std::vector<std::string> out{"real", "index", "bits"};
  for (int f = 0; f < int(Format::count_); ++f) out.push_back(row(Format(f)).name);
  return out;
}
} // namespace

Format format_of(const Token& t, Format otherwise) {
  if (t.kind != Token::name) return otherwise;
  if (t.text == "real") return Format::f32;
  if (t.text == "index") return Format::i32;
  if (t.text == "bits") return Format::u32;
  const Format f = format_named(t.text);
  if (f != Format::count_) return f;
  if (t.text.size() > 3 && t.text[0] == 'q' && t.text[2] == '_') {
    Diagnostic d =
        problem("T0601", t.where, "format `" + shown(t.text) + "`: block formats of inputs are not read yet",
                {{"used here", t.where}}, "declare the unpacked format, such as f16");
    d.kind = Diagnostic::not_yet;
    throw d;
  }
  const std::string near = nearest(t.text, format_names());
  throw problem("T0104", t.where, "no format is called `" + shown(t.text) + "`", {{"used here", t.where}},
                near.empty() ? "formats: f64 f32 f16 bf16 tf32 e4m3 e5m2 i64 i32 i16 i8 u32 u16 u8 bool"
                             : "did you mean `" + near + "`?");
}

Tensor Model::tensor(const Token& t) {
  auto it = tensors.find(t.text);
  if (it == tensors.end()) {
    for (Model* m = this; m; m = m->outer)
      if (m->broken.count(t.text)) throw Silent{};
    if (outer && outer->knows(t.text)) return outer->tensor(t);
    std::vector<std::string> known;
    for (auto& [n, v] : tensors) known.push_back(n);
    const std::string near = nearest(t.text, known);
    throw problem("T0101", t.where, "no tensor is called `" + shown(t.text) + "`", {{"used here", t.where}},
                  near.empty() ? "define it on a line above" : "did you mean `" + shown(near) + "`?");
  }
  const auto& ports = it->second.ports;
  if (t.field.empty()) {
    if (ports.size() == 1) return {&builder, ports[0]};
    throw problem("T0308", t.where,
                  "`" + shown(t.text) + "` has " + std::to_string(ports.size()) + " components",
                  {{"used here", t.where}}, "pick one: " + shown(t.text) + ".0");
  }
  const bool digits = t.field.size() < 6 && t.field.find_first_not_of("0123456789") == std::string::npos;
  const size_t k = digits ? size_t(std::stoul(t.field)) : ports.size();
  if (k >= ports.size())
    throw problem("T0308", t.where, "`" + shown(t.text) + "` has no component `" + shown(t.field) + "`",
                  {{"it has " + std::to_string(ports.size()), t.where}},
                  "count from 0: " + shown(t.text) + ".0");
  return {&builder, ports[k]};
}

void Model::define(const Token& name, std::vector<Port> ports, bool again) {
  auto [it, fresh] = tensors.try_emplace(name.text, Named{ports, name.where, false});
  if (fresh) return;
  if (!again)
    throw problem("T0102", name.where, "`" + shown(name.text) + "` is defined twice",
                  {{"again here", name.where}, {"first here", it->second.where}},
                  "give each tensor its own name");
  it->second.ports = std::move(ports);
}

Extent Model::extent_of(const Expr& e) {
  Evaluator v(*this);
  if (e.kind == Expr::word && !e.name.quoted && !e.name.symbol && axes.count(e.name.text) &&
      !state().g.symbols.count(e.name.text)) {
    const auto& a = axes.at(e.name.text);
    return state().axes.at(int(a.axis.id)).extent;
  }
  const Index i = v.index(e);
  if (!i.axes.empty() || !i.values.empty())
    throw problem("T0108", e.where, "an extent depends on symbols and numbers only",
                  {{"this one depends on an axis or a tensor", e.where}}, "declare a symbol for it: sym n");
  if (i.c.is_constant() && (i.c.value() < 0 || i.c.value() > (int64_t(1) << 62)))
    throw problem("T0108", e.where, "an extent of " + i.c.text(), {{"here", e.where}},
                  "extents are 0 or more");
  return i.c;
}

void Model::symbols(const Statement& s) {
  for (size_t k = 0; k < s.names.size(); ++k) {
    const Token& t = s.names[k];
    if (state().g.symbols.count(t.text))
      throw problem("T0102", t.where, "symbol `" + shown(t.text) + "` is declared twice",
                    {{"again here", t.where}}, "put its facts on one line: sym n <= 4096 % 2");
    SymbolFacts f;
    for (auto& fact : s.facts[k]) {
      const bool fits =
          fact.number.integral && !fact.number.suffix && fact.number.whole <= uint64_t(INT64_MAX);
      const int64_t v = fits ? int64_t(fact.number.whole) * (fact.negative ? -1 : 1) : 0;
      if (!fits || (fact.op == "%" && v <= 0))
        throw problem("T0109", fact.number.where, "a fact about `" + shown(t.text) + "` needs a whole number",
                      {{"here", fact.number.where}}, "sym n <= 4096, m % 2");
      if (fact.op == "<=") f.upper = v;
      if (fact.op == ">=") f.lower = v;
      if (fact.op == "%") f.divisor = v;
    }
    if (f.lower > f.upper)
      throw problem(
          "T0109", t.where, "no value of `" + shown(t.text) + "` is allowed",
          {{std::to_string(f.lower) + " <= " + shown(t.text) + " <= " + std::to_string(f.upper), t.where}},
          "widen one bound");
    builder.symbol(t.text, f);
  }
}

void Model::axis(const Statement& s) {
  for (size_t k = 0; k < s.names.size(); ++k) {
    const Token& t = s.names[k];
    const Extent n = extent_of(*s.dims[k].extent);
    if (auto it = axes.find(t.text); it != axes.end())
      throw problem("T0103", t.where, "axis `" + shown(t.text) + "` is declared twice",
                    {{"again here", t.where}, {"first here", it->second.where}},
                    "use another name, or [" + shown(t.text) + ": extent] where it is used");
    const Axis a{fresh_axis(), t.text};
    state().declare(a, n, "its declaration", t.where, true);
    axes.emplace(t.text, FileAxis{a, t.where});
  }
}

void Model::input(const Statement& s) {
  const Token& t = s.names[0];
  if (tensors.count(t.text)) define(t, {}); // says where the first one is
  if (s.value)
    throw problem("T0501", t.where, "a state with a first value belongs to a recurrence", {{"here", t.where}},
                  "a donated input is: state name[dims] : format");
  const Format f = format_of(s.format, Format::f32);
  std::vector<Extent> shape;
  for (size_t d = 0; d < s.dims.size(); ++d) {
    const Dim& x = s.dims[d];
    if (!x.extent) {
      shape.push_back(extent_of(*x.at));
      continue;
    }
    const Expr& e = *x.at;
    if (e.kind != Expr::word || e.name.quoted || e.name.symbol || is_reserved(e.name.text))
      throw problem("T0004", e.where, "expected the name of a dimension", {{"here", e.where}},
                    "input name[i: extent]");
    const Extent n = extent_of(*x.extent);
    const std::string who = t.text + ", dimension " + std::to_string(d);
    if (auto it = axes.find(e.name.text); it != axes.end()) {
      const auto& known = state().axes.at(int(it->second.axis.id));
      if (!(known.extent == n))
        throw problem(
            "T0103", x.where, "axis `" + shown(e.name.text) + "` is declared with two extents",
            {{"= " + shown(n.text()), x.where}, {"= " + shown(known.extent.text()), it->second.where}},
            "use another name for one of them");
    } else {
      const Axis a{fresh_axis(), e.name.text};
      state().declare(a, n, who, x.where, false);
      axes.emplace(e.name.text, FileAxis{a, x.where});
    }
    shape.push_back(n);
  }
  const Tensor made = within("T0108", t.where, [&] {
    if (s.head.text == "param") return builder.param(t.text, shape, f, t.where);
    if (s.head.text == "state") return builder.state(t.text, shape, f, t.where);
    return builder.input(t.text, shape, f, t.where);
  });
  if (s.sorted) within("T0108", t.where, [&] { return set_sorted(made, t.where); });
  define(t, {made.port});
  tensors.at(t.text).state = s.head.text == "state";
}

void Model::monoid(const Statement& s) {
  const Token& name = s.names[0];
  if (auto it = monoids.find(name.text); it != monoids.end())
    throw problem("T0102", name.where, "monoid `" + shown(name.text) + "` is declared twice",
                  {{"again here", name.where}, {"first here", it->second.where}},
                  "give each monoid its own name");
  if (s.left.text == s.right.text)
    throw problem("T0102", s.right.where, "both states of `combine` have one name",
                  {{"again here", s.right.where}}, "combine (a, b) = ..");
  const size_t n = s.components.size();
  MonoidDecl d;
  d.where = name.where;
  d.spec.name = name.text;
  d.spec.commutative = !s.ordered;
  if (s.identity.size() != n)
    throw problem("T0305", s.identity[0]->where,
                  "`" + shown(name.text) + "` has " + std::to_string(n) + " components",
                  {{std::to_string(s.identity.size()) + " identities", s.identity[0]->where}},
                  "give one literal a component");
  Model scratch(file, exact, nullptr, monoids, problems); // its pool holds the combine
  Evaluator v(scratch);
  std::vector<Type> types;
  for (size_t c = 0; c < n; ++c) {
    const Token& t = s.components[c].type;
    if (t.text != "real" && t.text != "index" && t.text != "bits" && t.text != "bool")
      throw problem("T0104", t.where, "no type is called `" + shown(t.text) + "`", {{"used here", t.where}},
                    "types: real, index, bits, bool");
    types.push_back(t.text == "real"    ? Type::real
                    : t.text == "index" ? Type::index
                    : t.text == "bits"  ? Type::bits
                                        : Type::boolean);
    for (size_t b = 0; b < c; ++b)
      if (s.components[b].name.text == s.components[c].name.text)
        throw problem("T0102", s.components[c].name.where,
                      "two components are called `" + shown(s.components[c].name.text) + "`",
                      {{"again here", s.components[c].name.where}}, "give each its own name");
    const Scalar x = v.literal(v.scalar(*s.identity[c]), types[c], *s.identity[c]);
    const auto& term = scratch.state().pool[x.id()];
    if (term.op != Op::literal || term.type != types[c])
      throw problem("T0305", s.identity[c]->where,
                    "an identity must be a literal of type " + std::string(expr::name(types[c])),
                    {{"this is none", s.identity[c]->where}}, "such as 0, -inf, MAX, true");
    d.spec.identity.push_back({term.type, expr::State::present, term.r, term.whole});
    for (int side = 0; side < 2; ++side) {
      const Token& state_name = side ? s.right : s.left;
      Meaning x_of;
      x_of.scalar =
          Scalar(&scratch.builder, scratch.state().pool.leaf(Op::var, types[c], int64_t(2 * c) + side));
      v.bind(state_name.text + "." + s.components[c].name.text, x_of);
      if (n == 1) v.bind(state_name.text, x_of);
    }
  }
  auto combined = v.terms(*s.value);
  if (combined.size() != n)
    throw problem(
        "T0305", s.value->where,
        "`combine` of `" + shown(name.text) + "` gives " + std::to_string(combined.size()) + " values",
        {{std::to_string(n) + " components", s.components[0].name.where}}, "give one value a component");
  auto pool = std::make_shared<Pool>();
  std::vector<Id> ids;
  for (size_t c = 0; c < n; ++c) {
    const Scalar x = v.literal(combined[c], types[c], *s.value);
    if (x.type() != types[c])
      throw problem("T0305", s.value->where,
                    "component " + std::to_string(c) + " of `combine` is " + expr::name(x.type()),
                    {{std::string("declared ") + expr::name(types[c]), s.components[c].type.where}},
                    "convert it");
    ids.push_back(expr::transplant(scratch.state().pool, x.id(), *pool, [&](const expr::Term& t) {
      if (t.op != Op::var)
        throw problem("T0305", s.value->where, "`combine` may use the two states only",
                      {{"it reads something else", s.value->where}}, "put it into the terms that are folded");
      return pool->leaf(t.op, t.type, t.whole);
    }));
  }
  d.spec.combine = [pool, ids](Pool& p, const std::vector<expr::E>& a, const std::vector<expr::E>& b) {
    std::vector<expr::E> out;
    for (Id id : ids)
      out.push_back({&p, expr::transplant(*pool, id, p, [&](const expr::Term& t) {
                       return (t.whole % 2 ? b : a)[size_t(t.whole / 2)].id;
                     })});
    return out;
  };
  if (!s.unproved && !ir::is_proved(d.spec))
    throw problem(
        "T0310", name.where,
        "monoid `" + shown(name.text) + "` has no proof, and its folds would be split and reordered",
        {{"no row of the table of monoids has its identity and combine", name.where}},
        "write `unproved` before `combine` if you know that it is associative, its identity neutral" +
            std::string(s.ordered ? "" : " and its operands may be swapped"));
  d.spec.unproved = s.unproved;
  monoids.emplace(name.text, std::move(d));
}

void Model::output(const Statement& s) {
  for (size_t k = 0; k < s.names.size(); ++k) {
    const Token& t = s.names[k];
    const Port p = port(s.sources[k]);
    const std::string name = t.text + (t.field.empty() ? "" : "." + t.field);
    for (auto& o : outputs)
      if (o.name == name)
        throw problem("T0402", t.where, "two outputs are called `" + shown(name) + "`",
                      {{"again here", t.where}}, "name one of them: output other = " + shown(name));
    const Type type = state().g.type(p);
    const Format f = format_of(s.format, default_format(type));
    if (type_of(f) != type && !exact)
      throw problem("T0403", s.format.where,
                    std::string("format ") + row(f).name + " holds " + expr::name(type_of(f)) + " values",
                    {{"`" + shown(name) + "` is " + expr::name(type), t.where}},
                    std::string("use ") + row(default_format(type)).name + ", or convert the value");
    outputs.push_back({name, p, f});
  }
}

void Model::gradient(const Statement& s) {
  if (exact)
    throw problem("T0701", s.where, "a gradient", {{"in the exact form its nodes are written out", s.where}},
                  "leave `exact` out");
  if (s.names.size() != s.sources.size())
    throw problem("T0305", s.names[0].where,
                  std::to_string(s.names.size()) + " names for " + std::to_string(s.sources.size()) +
                      " gradients",
                  {{"one is taken by each of these", joined(s.sources[0].where, s.sources.back().where)}},
                  "give one name a tensor");
  std::vector<Tensor> by;
  for (auto& t : s.sources) by.push_back(tensor(t));
  const Tensor y = tensor(s.left);
  const auto made = within("T0603", s.left.where, [&] {
    return s.right.text.empty() ? diff::grad(y, by, s.left.where)
                                : diff::vjp(y, tensor(s.right), by, s.left.where);
  });
  for (size_t k = 0; k < made.size(); ++k) define(s.names[k], {made[k].port});
}

std::vector<std::string> Model::defined(const Statement& s) const {
  std::vector<std::string> out;
  if (s.kind == Statement::output || s.kind == Statement::store) return out;
  for (auto& n : s.names) out.push_back(n.text);
  for (auto& b : s.block)
    if (b.kind == Statement::input || b.kind == Statement::emit)
      for (auto& n : b.names) out.push_back(n.text);
  return out;
}

void Model::statement(Statement& s) {
  switch (s.kind) {
  case Statement::symbols: return symbols(s);
  case Statement::axis: return axis(s);
  case Statement::input: return input(s);
  case Statement::monoid: return monoid(s);
  case Statement::output: return output(s);
  case Statement::define: return exact ? line(s) : definition(s);
  case Statement::store:
    if (exact)
      throw problem("T0701", s.where, "a store", {{"in the exact form it is a node like any other", s.where}},
                    "leave `exact` out");
    return store(s);
  case Statement::recur: return exact ? recur_exact(s) : recur(s);
  case Statement::gradient: return gradient(s);
  case Statement::later: {
    Diagnostic d = problem("T0602", s.where, "`" + s.head.text + "` is not read yet",
                           {{"this statement", s.where}}, "leave it out for now");
    d.kind = Diagnostic::not_yet;
    throw d;
  }
  default:
    throw problem("T0501", s.where, "`" + shown(s.head.text) + "` belongs to a recurrence",
                  {{"outside of one here", s.where}}, "indent it below a line `recur name over t: steps`");
  }
}

void Model::one(Statement& s) {
  try {
    return statement(s);
  } catch (Diagnostic& d) { problems.push_back(std::move(d)); } catch (Silent&) {
  } catch (const Error& e) {
    problems.push_back(problem("T0900", s.where, e.headline(), e.facts(), e.fix()));
  }
  for (auto& n : defined(s))
    if (!tensors.count(n)) broken.insert(n);
}

void Model::run(std::vector<Statement>& statements) {
  for (auto& s : statements)
    if (problems.size() <= 100) one(s);
}

Reading read(std::string_view text, const std::string& file_name) {
  Reading out;
  const char* file = kept_name(file_name);
  const Lines lines = tokenize(text, file, out.problems);
  File syntax = parse_syntax(lines, out.problems);
  std::map<std::string, MonoidDecl> monoids;
  Model m(file, syntax.exact, nullptr, monoids, out.problems);
  m.broken.insert(syntax.broken.begin(), syntax.broken.end());
  m.run(syntax.statements);
  for (auto& w : m.builder.warnings()) {
    const size_t end = w.find("\n  fix: ");
    const size_t from = w.find(": warning: ");
    Diagnostic d{
        Diagnostic::warning,
        "T0801",
        {},
        from == std::string::npos ? w : w.substr(from + 11, end == std::string::npos ? end : end - from - 11),
        {},
        end == std::string::npos ? "" : w.substr(end + 8)};
    out.warnings.push_back(std::move(d));
  }
  std::stable_sort(out.problems.begin(), out.problems.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.where.line != b.where.line ? a.where.line < b.where.line : a.where.column < b.where.column;
  });
  if (!out.problems.empty()) return out;
  for (auto& o : m.outputs) m.state().g.outputs.push_back({o.port, o.name, o.format});
  out.graph = m.builder.graph();
  return out;
}

Graph parse(std::string_view text, const std::string& file_name) {
  Reading r = read(text, file_name);
  if (r.graph) return std::move(*r.graph);
  const std::string report = render(r.problems, text, file_name);
  throw Problems(std::move(r.problems), report);
}

} // namespace tang::text
