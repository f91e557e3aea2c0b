// Functions, folds and splits.
#include <cmath>

#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"
#include "tang/text/evaluator.hpp"

namespace tang::text {

using namespace ir;

namespace {
using expr::E;

struct Called {
  const char* name;
  E (*build)(E);
  bool any_number; // also of index and bits
};

constexpr Called called[] = {
    {"exp", expr::exp, false},           {"log", expr::log, false},
    {"cos", expr::cos, false},           {"tanh", expr::tanh, false},
    {"sigmoid", expr::sigmoid, false},   {"silu", expr::silu, false},
    {"softplus", expr::softplus, false}, {"relu", expr::relu, true},
    {"square", expr::square, true},      {"erf", expr::erf, false},
    {"gelu", expr::gelu, false},         {"gelu_tanh", expr::gelu_tanh, false},
    {"elu", expr::elu, false},           {"abs", expr::abs, true},
};

// The rows of the op table that are called by name.
struct Raw {
  const char* name;
  Op op;
};

constexpr Raw raws[] = {{"exp2", Op::exp2},
                        {"log2", Op::log2},
                        {"sqrt", Op::sqrt},
                        {"sin", Op::sin},
                        {"atan2", Op::atan2},
                        {"floor", Op::floor},
                        {"recip", Op::recip},
                        {"is_nan", Op::is_nan},
                        {"ratio", Op::ratio},
                        {"max", Op::max},
                        {"min", Op::min},
                        {"select", Op::select},
                        {"only", Op::only},
                        {"or_else", Op::or_else},
                        {"add", Op::add},
                        {"mul", Op::mul},
                        {"neg", Op::neg},
                        {"div", Op::div},
                        {"mod", Op::mod},
                        {"less", Op::less},
                        {"equal", Op::equal},
                        {"both", Op::both},
                        {"either", Op::either},
                        {"flip", Op::flip},
                        {"bit_and", Op::bit_and},
                        {"bit_or", Op::bit_or},
                        {"bit_xor", Op::bit_xor},
                        {"shift_left", Op::shift_left},
                        {"shift_right", Op::shift_right},
                        {"to_real", Op::to_real},
                        {"to_index", Op::to_index},
                        {"to_bits", Op::to_bits}};
} // namespace

Meaning Evaluator::call(const Expr& e) {
  const std::string& f = e.name.text;
  if (e.name.quoted || e.name.symbol || !e.name.field.empty() || !is_function(f)) {
    const std::string near = nearest(f, function_names());
    throw problem("T0106", e.name.where, "no function is called `" + shown(f) + "`",
                  {{"called here", e.name.where}},
                  near.empty() ? "tensors are read with brackets: " + shown(f) + "[..]"
                               : "did you mean `" + near + "`?");
  }
  auto takes = [&](size_t least, size_t most) {
    if (e.args.size() >= least && e.args.size() <= most) return;
    throw problem(
        "T0307", e.where,
        "`" + f + "` takes " + (least == most ? std::to_string(least) : std::to_string(least) + " or more") +
            (most == 1 ? " operand" : " operands"),
        {{std::to_string(e.args.size()) + " given", e.where}}, "give each operand once, between commas");
  };
  auto result = [&](const Scalar& s) {
    limit(s, e.where);
    return wrap(s);
  };
  for (auto& s : called) {
    if (f != s.name) continue;
    takes(1, 1);
    const Scalar x = scalar(*e.args[0]);
    if (!x.builder() && !m_.exact) { // a plain number stays one
      Pool p;
      return number_value(expr::evaluate(p, s.build({&p, p.literal(x.constant())}).id, {}).r);
    }
    const Scalar y = typed(x);
    if (y.type() != Type::real && !(s.any_number && y.type() != Type::boolean))
      throw problem("T0301", e.where, "`" + f + "` takes real values",
                    {{expr::name(y.type()), e.args[0]->where}}, "convert the operand: real(..)");
    return result({&m_.builder, s.build({&m_.state().pool, y.id()}).id});
  }
  if (f == "iota") {
    takes(1, 1);
    const Index i = index(*e.args[0]);
    if (i.axes.empty() && i.values.empty() && i.c.is_constant())
      return result(index_literal(m_.builder, i.c.value()));
    if (!i.c.is_constant())
      throw problem(
          "T0312", e.args[0]->where, "the extent " + shown(i.c.text()) + " is no value of an expression",
          {{"it is known only when the graph is bound", e.args[0]->where}}, "count it: count[axis] 1");
    return result(within("T0203", e.where, [&] { return iota(i); }));
  }
  if (f == "real" || f == "index" || f == "bits") {
    takes(1, 1);
    const Meaning v = value(*e.args[0]);
    if (v.is_plain() && !m_.exact && f == "real") return v;
    Scalar x = v.scalar || v.guard ? scalar(v, *e.args[0]) : Scalar(0);
    if (!v.scalar && !v.guard) {
      if (v.is_extent()) scalar(v, *e.args[0]);
      if (!v.form->c.is_constant()) scalar(Meaning{{}, Index(v.form->c), {}, {}}, *e.args[0]);
      x = within("T0203", e.where, [&] { return iota(*v.form); });
    }
    if (!x.builder() && f != "real" && !m_.exact && v.form)
      x = literal(x, f == "index" ? Type::index : Type::bits, *e.args[0]);
    x = typed(x);
    return result(f == "real" ? to_real(x) : f == "index" ? to_index(x) : to_bits(x));
  }
  if (f == "floordiv" || f == "ceildiv") {
    takes(2, 2);
    const Index a = index(*e.args[0]), b = index(*e.args[1]);
    const bool extent = a.axes.empty() && a.values.empty() && b.axes.empty() && b.values.empty() &&
                        b.c.is_constant() && b.c.value() > 0;
    if (!extent)
      throw problem("T0206", e.where, "`" + f + "` divides an extent by a positive constant",
                    {{"here", e.where}}, "index values are divided with /");
    Meaning out;
    out.form = Index(within("T0210", e.where, [&] {
      return f == "floordiv" ? floor_div(a.c, b.c.value()) : ceil_div(a.c, b.c.value());
    }));
    return out;
  }
  if (f == "real_bits") {
    takes(1, 1);
    const Meaning v = value(*e.args[0]);
    if (e.args[0]->kind != Expr::number || e.args[0]->name.suffix != 'u')
      throw problem("T0304", e.where, "`real_bits` takes the 64 bits of a real", {{"here", e.where}},
                    "real_bits(0x7ff0000000000000u)");
    Meaning out;
    out.scalar = Scalar(&m_.builder, m_.state().pool.literal(double_of(e.args[0]->name.whole)));
    return out;
  }
  if (f == "power") {
    takes(2, 2);
    const Meaning n = value(*e.args[1]);
    if (!n.is_plain() || !n.form || std::fabs(n.scalar->constant()) > 64)
      throw problem("T0304", e.args[1]->where, "an exponent must be a whole number between -64 and 64",
                    {{"here", e.args[1]->where}}, "use exp(y * log(x)) for any other");
    const Scalar x = typed(scalar(*e.args[0]));
    if (x.type() != Type::real)
      throw problem("T0301", e.where, "`power` takes real values", {{expr::name(x.type()), e.args[0]->where}},
                    "convert the operand: real(..)");
    return result({&m_.builder, expr::power({&m_.state().pool, x.id()}, int(n.scalar->constant())).id});
  }
  for (auto& r : raws) {
    if (f != r.name) continue;
    const bool many = r.op == Op::max || r.op == Op::min;
    const size_t n = size_t(expr::arity(r.op));
    takes(n, many ? 64 : n);
    std::vector<Meaning> v;
    bool extents = many, symbolic = false, plain = true;
    for (auto& a : e.args) {
      v.push_back(value(*a));
      extents = extents && v.back().is_extent();
      symbolic |= v.back().is_extent() && !v.back().scalar;
      plain = plain && v.back().is_plain();
    }
    if (extents && symbolic) {
      Extent x = v[0].form->c;
      for (size_t k = 1; k < v.size(); ++k)
        x = within("T0210", e.where,
                   [&] { return r.op == Op::max ? max(x, v[k].form->c) : min(x, v[k].form->c); });
      Meaning out;
      out.form = Index(x);
      return out;
    }
    std::vector<Scalar> x;
    std::vector<const Expr*> from;
    for (size_t k = 0; k < v.size(); ++k) {
      const bool condition_first = k == 0 && (r.op == Op::select || r.op == Op::only);
      if (condition_first && r.op == Op::only && v[0].guard && !m_.exact) v[0].scalar.reset();
      x.push_back(condition_first ? condition(v[k], *e.args[k]) : scalar(v[k], *e.args[k]));
      from.push_back(e.args[k].get());
    }
    if (plain && !m_.exact && expr::row(r.op).takes != expr::Takes::whole &&
        expr::row(r.op).gives != expr::Gives::boolean && r.op != Op::select && r.op != Op::only &&
        r.op != Op::or_else && r.op != Op::to_index && r.op != Op::to_bits) {
      double out = x[0].constant();
      if (x.size() == 1) out = expr::compute(r.op, expr::real(out), expr::real(0)).r;
      for (size_t k = 1; k < x.size(); ++k)
        out = expr::compute(r.op, expr::real(out), expr::real(x[k].constant())).r;
      return number_value(out);
    }
    Scalar out = x[0];
    if (x.size() == n) return result(apply(r.op, x, from, e.where));
    for (size_t k = 1; k < x.size(); ++k) out = apply(r.op, {out, x[k]}, {from[0], from[k]}, e.where);
    return result(out);
  }
  check(false, "a function without a meaning: " + f);
  return {};
}

// ---- folds
// ----------------------------------------------------------------------------------------------------------
namespace {
// The monoids of the table that a file may name without declaring them.
std::optional<MonoidSpec> table(const std::string& name, size_t terms) {
  if (name == "argmax") return argmax();
  if (name == "argmin") return argmin();
  if (name == "welford") return welford();
  if (name == "online_softmax" && terms >= 2 && terms <= 64) return online_softmax(int(terms) - 1);
  if (name.size() > 3 && name.size() < 6 && name.compare(0, 3, "top") == 0) {
    const int k = std::atoi(name.c_str() + 3);
    if (k >= 1 && k <= 64 && "top" + std::to_string(k) == name) return topk(k);
  }
  return {};
}

bool uses(const Expr& e, const std::string& axis, int64_t& divisor, Where& where) {
  bool out = false;
  if (e.kind == Expr::chain)
    for (size_t k = 0; k + 1 < e.args.size() && k < 1; ++k) {
      const Expr &a = *e.args[k], &b = *e.args[k + 1];
      if (a.kind == Expr::word && !a.name.quoted && a.name.field.empty() && a.name.text == axis &&
          b.kind == Expr::number && b.name.integral && !b.name.suffix && b.name.whole > 0 &&
          b.name.whole < (uint64_t(1) << 40) && (e.ops[k] == "/" || e.ops[k] == "%")) {
        if (divisor && divisor != int64_t(b.name.whole))
          throw problem(
              "T0206", e.where, "axis `" + shown(axis) + "` is split by two constants",
              {{"by " + std::to_string(divisor), where}, {"by " + std::to_string(b.name.whole), e.where}},
              "split by one of them, and use its index value for the other");
        divisor = int64_t(b.name.whole);
        where = e.where;
        out = true;
      }
    }
  for (auto& a : e.args) out |= uses(*a, axis, divisor, where);
  for (auto& b : e.bindings) out |= uses(*b.value, axis, divisor, where);
  return out;
}

// The dimension of the first tensor that `axis` alone indexes.
const Expr* indexed_by(const Expr& e, const std::string& axis, size_t& dim) {
  if (e.kind == Expr::read)
    for (size_t d = 0; d < e.args.size(); ++d)
      if (e.args[d]->kind == Expr::word && e.args[d]->name.text == axis && !e.args[d]->name.quoted)
        return dim = d, &e;
  for (auto& a : e.args)
    if (auto* r = indexed_by(*a, axis, dim)) return r;
  for (auto& b : e.bindings)
    if (auto* r = indexed_by(*b.value, axis, dim)) return r;
  return nullptr;
}
} // namespace

std::map<std::string, std::shared_ptr<Split>> Evaluator::split(const std::vector<std::string>& names,
                                                               const Expr& body, Guard& inside) {
  std::map<std::string, std::shared_ptr<Split>> out;
  inside = always();
  auto& s = m_.state();
  for (auto& name : names) {
    int64_t divisor = 0;
    Where where;
    if (m_.exact || !uses(body, name, divisor, where)) continue;
    auto* v = bound(name);
    if (!v || !v->is_axis()) continue;
    const Axis axis = v->form->axes[0].first;
    std::optional<Extent> n;
    Where from;
    if (auto it = s.axes.find(int(axis.id)); it != s.axes.end())
      n = it->second.extent, from = it->second.where;
    size_t dim = 0;
    if (!n)
      if (auto* r = indexed_by(body, name, dim); r && m_.tensors.count(r->name.text)) {
        const auto shape = s.g.shape(m_.port(r->name));
        if (dim < shape.size()) n = shape[dim];
      }
    if (!n)
      throw problem("T0203", where, "axis `" + shown(name) + "` is split but has no extent",
                    {{"split here", where}}, "declare it: [" + shown(name) + ": extent]");
    split_extent[name] = *n;
    auto part = std::make_shared<Split>();
    part->divisor = divisor;
    const Extent blocks = within("T0210", where, [&] { return ceil_div(*n, divisor); }), lanes = divisor;
    part->outer = fresh(name + "_block", &blocks, "the split of " + name, where);
    part->inner = fresh(name + "_lane", &lanes, "the split of " + name, where);
    Meaning whole;
    whole.form = plus(times(Index(part->outer), divisor, where), Index(part->inner), where);
    whole.split = part;
    if (!(n->is_constant() && n->value() % divisor == 0)) {
      Guard g{{{minus(Index(*n + Extent(-1)), *whole.form, where)}}, where};
      inside = inside && g;
    }
    unbind(name);
    bind(name, whole);
    out.emplace(name, part);
  }
  return out;
}

std::vector<Scalar> Evaluator::fold(const Expr& e) {
  const std::string& name = e.name.text;
  std::vector<Axis> axes;
  std::vector<std::string> names;
  for (auto& d : e.axes) {
    const Axis a = open_axis(d);
    for (auto& b : axes)
      if (b.id == a.id)
        throw problem("T0205", d.where, "axis `" + shown(a.name) + "` is folded twice",
                      {{"again here", d.where}}, "name each axis once");
    axes.push_back(a);
    Meaning v;
    v.form = Index(a);
    names.push_back(d.at->name.text);
    bind(names.back(), v);
  }
  Guard inside = always();
  const auto splits = split(names, *e.args[0], inside);
  if (!splits.empty()) {
    std::vector<Axis> all;
    for (size_t k = 0; k < axes.size(); ++k) {
      auto it = splits.find(names[k]);
      if (it == splits.end()) {
        all.push_back(axes[k]);
      } else {
        all.push_back(it->second->outer);
        all.push_back(it->second->inner);
      }
    }
    axes = all;
  }
  std::vector<Scalar> lift;
  std::vector<const Expr*> from;
  const Expr* body = e.args[0].get();
  if (body->kind == Expr::tuple)
    for (auto& a : body->args) from.push_back(a.get());
  const bool truth = name == "any" || name == "all";
  if (truth || name == "count") {
    Scalar x = truth ? condition(*body) : scalar(*body);
    if (name == "count") {
      x = literal(x, Type::index, *body);
      if (x.type() == Type::boolean) x = to_index(x);
    }
    lift = {x};
  } else {
    lift = terms(*body);
  }
  if (from.size() != lift.size()) from.assign(lift.size(), body);
  if (inside.pieces.size() != 1 || !inside.pieces[0].empty())
    for (auto& l : lift) l = masked(inside, typed(l));
  for (auto& n : names) unbind(n);

  if (!e.name.quoted && name == "logsumexp" && !m_.monoids.count(name)) {
    if (lift.size() != 1 || typed(lift[0]).type() != Type::real)
      throw problem("T0305", e.where, "`logsumexp` folds one real value", {{"this term", body->where}},
                    "convert it: real(..)");
    return {within("T0306", e.where, [&] { return logsumexp(axes, typed(lift[0]), e.where); })};
  }
  const MonoidSpec spec =
      monoid(e.name, lift.size(), lift.size() == 1 && lift[0].builder() && lift[0].type() == Type::index);
  fit(spec, lift, from, *body, name);
  for (size_t c = 0; c < lift.size(); ++c) require_extents(lift[c], from[c]->where);
  for (auto& a : axes)
    if (!m_.state().axes.count(int(a.id)) && !(m_.outer && a.name == m_.time)) no_extent(a.name, e.where);
  return within("T0306", e.where, [&] { return ir::fold(spec, axes, lift, e.where); });
}

void Evaluator::no_extent(const std::string& axis, Where where) {
  throw problem("T0203", where, "axis `" + shown(axis) + "` indexes no tensor, so it has no extent",
                {{"used here", where}}, "declare it: [" + shown(axis) + ": extent]");
}

void Evaluator::require_extents(const Scalar& s, Where where) {
  if (!s.builder()) return;
  for (int a : m_.state().free_axes(s.id()))
    if (!m_.state().axes.count(a)) no_extent(m_.state().axis_name(a), where);
}

MonoidSpec Evaluator::monoid(const Token& t, size_t terms, bool whole) {
  const std::string& name = t.text;
  if (auto it = m_.monoids.find(name); it != m_.monoids.end() && (t.quoted || !is_fold(name)))
    return it->second.spec;
  if (!t.quoted && is_fold(name) && name != "logsumexp")
    return name == "max"                             ? max_of_reals()
           : name == "min"                           ? min_of_reals()
           : name == "any"                           ? any_of()
           : name == "all"                           ? all_of()
           : name == "count" || (whole && !m_.exact) ? sum_of_index()
                                                     : sum_of_reals();
  if (!t.quoted && !m_.exact)
    if (auto spec = table(name, terms)) return *spec;
  if (m_.broken.count(name)) throw Silent{};
  std::vector<std::string> known{
      "sum", "max", "min", "any", "all", "count", "argmax", "argmin", "welford", "online_softmax", "top2"};
  for (auto& [n, d] : m_.monoids) known.push_back(n);
  const std::string near = nearest(name, known);
  throw problem("T0105", t.where, "no monoid is called `" + shown(name) + "`",
                {{"folded with here", t.where}},
                near.empty() ? "declare it: monoid " + shown(name) + "(..) identity (..) combine (a, b) = .."
                             : "did you mean `" + shown(near) + "`?");
}

void Evaluator::fit(const MonoidSpec& spec, std::vector<Scalar>& lift, const std::vector<const Expr*>& from,
                    const Expr& body, const std::string& name) {
  const size_t n = spec.identity.size();
  if (lift.size() != n)
    throw problem("T0305", body.where,
                  "`" + shown(name) + "` has " + std::to_string(n) + (n == 1 ? " component" : " components"),
                  {{std::to_string(lift.size()) + (lift.size() == 1 ? " value" : " values"), body.where}},
                  "give one value a component: fold " + shown(name) + "[..] (..)");
  for (size_t c = 0; c < n; ++c) {
    lift[c] = literal(lift[c], spec.identity[c].type, *from[c]);
    if (lift[c].type() != spec.identity[c].type)
      throw problem("T0305", from[c]->where,
                    "component " + std::to_string(c) + " of `" + shown(name) + "` is " +
                        expr::name(spec.identity[c].type),
                    {{expr::name(lift[c].type()), from[c]->where}},
                    std::string("convert it: ") + expr::name(spec.identity[c].type) + "(..)");
  }
}

} // namespace tang::text
