// Operators: each works on scalars, on index forms, on guards, or on several of them at once; the context
// picks.
#include <cmath>

#include "tang/base/number.hpp"
#include "tang/text/evaluator.hpp"

namespace tang::text {

using namespace ir;

namespace {
constexpr size_t most_alternatives = 128;

expr::Value whole_value(Type type, int64_t v) { return {type, expr::State::present, 0, v}; }
} // namespace

// Types are checked here, so that a mismatch names the user's operands.
Scalar Evaluator::apply(Op op, std::vector<Scalar> x, const std::vector<const Expr*>& from, Where where) {
  const auto& r = expr::row(op);
  const size_t first = r.takes == expr::Takes::guarded ? 1 : 0;
  std::optional<Type> type;
  for (size_t k = first; k < x.size(); ++k)
    if (!type && x[k].builder()) type = x[k].type();
  if (!type && r.takes == expr::Takes::whole) type = Type::index;
  if (!type && r.takes == expr::Takes::boolean) type = Type::boolean;
  for (size_t k = 0; k < x.size(); ++k)
    x[k] = literal(x[k], k < first ? Type::boolean : type.value_or(Type::real), *from[k]);
  auto fail = [&](const std::string& why, const char* fix) {
    std::vector<Note> facts;
    for (size_t k = 0; k < x.size(); ++k) facts.push_back({expr::name(x[k].type()), from[k]->where});
    throw problem("T0301", where, std::string("`") + r.name + "` " + why, facts, fix);
  };
  const Type t = x[first].type();
  const bool whole = t == Type::index || t == Type::bits;
  const char* convert = "convert an operand: real(..), index(..) or bits(..)";
  if (r.takes == expr::Takes::real && t != Type::real) fail("takes real values", convert);
  if (r.takes == expr::Takes::number && t == Type::boolean)
    fail("takes numbers", "select(condition, 1, 0) makes a number of a condition");
  if (r.takes == expr::Takes::whole && !whole) fail("takes index or bits values", convert);
  if (r.takes == expr::Takes::boolean && t != Type::boolean)
    fail("takes conditions", "compare the operands with something");
  if (first && x[0].type() != Type::boolean)
    fail("takes a condition first", "compare the first operand with something");
  const bool shift = op == Op::shift_left || op == Op::shift_right;
  for (size_t k = first + 1; k < x.size(); ++k)
    if (x[k].type() != t && !(shift && (x[k].type() == Type::index || x[k].type() == Type::bits)))
      fail("mixes types", convert);
  const Scalar out = ir::apply(op, x);
  limit(out, where);
  return out;
}

Meaning Evaluator::chain(const Expr& e) {
  // s / c and s % c of a split axis
  auto split_part = [&](const Expr& a, const std::string& op, const Expr& b) -> std::optional<Meaning> {
    if (a.kind != Expr::word || a.name.quoted || b.kind != Expr::number || (op != "/" && op != "%"))
      return {};
    auto* v = bound(a.name.text);
    if (!v || !v->split || !b.name.integral || int64_t(b.name.whole) != v->split->divisor) return {};
    Meaning out;
    out.form = Index(op == "/" ? v->split->outer : v->split->inner);
    return out;
  };
  size_t k = 0;
  Meaning out;
  if (auto part = split_part(*e.args[0], e.ops[0], *e.args[1])) {
    out = *part;
    k = 1;
  } else {
    out = value(*e.args[0]);
  }
  const Expr* left = e.args[0].get();
  for (; k < e.ops.size(); ++k) {
    const Expr& b = *e.args[k + 1];
    const Where where = joined(e.args[0]->where, b.where);
    const std::string& op = e.ops[k];
    if (op == "and" || op == "or") {
      out = logic(op, out, k ? e : *left, value(b), b, where);
    } else if (op == "-" && b.kind == Expr::number && b.name.suffix) { // x - 3i adds the literal -3
      Meaning minus;
      const Meaning plus_b = value(b);
      const auto& t = m_.state().pool[plus_b.scalar->id()];
      minus.scalar =
          Scalar(&m_.builder, m_.state().pool.literal(whole_value(t.type, int64_t(-uint64_t(t.whole)))));
      if (plus_b.form) minus.form = times(*plus_b.form, -1, b.where);
      out = arithmetic("+", out, k ? e : *left, minus, b, where);
    } else {
      out = arithmetic(op, out, k ? e : *left, value(b), b, where);
    }
  }
  return out;
}

Meaning Evaluator::arithmetic(const std::string& op, const Meaning& a, const Expr& ea, const Meaning& b,
                              const Expr& eb, Where where) {
  Meaning out;
  if (a.is_plain() && b.is_plain()) {
    const double x = a.scalar->constant(), y = b.scalar->constant();
    if (op == "+") return number_value(x + y);
    if (op == "-") return number_value(x + -y);
    if (op == "*") return number_value(x * y);
    if (op == "/") return number_value(x / y);
    if (!a.form || !b.form || y <= 0)
      throw problem("T0304", where, "`" + op + "` takes whole numbers, the right one positive",
                    {{"here", where}}, "use whole numbers");
    if (op == "%") return number_value(double(floor_mod(int64_t(x), int64_t(y))));
  }
  const bool values = a.scalar && b.scalar;
  auto formed = [&] {
    if (op == "+") out.form = plus(*a.form, *b.form, where);
    if (op == "-") out.form = minus(*a.form, *b.form, where);
    if (op == "*") {
      if (b.is_extent() && b.form->c.is_constant())
        out.form = times(*a.form, b.form->c.value(), where);
      else if (a.is_extent() && a.form->c.is_constant())
        out.form = times(*b.form, a.form->c.value(), where);
      else if (a.is_extent() && b.is_extent()) {
        const Extent n = within("T0210", where, [&] { return a.form->c * b.form->c; });
        if (n.text().size() > 400)
          throw problem("T0210", where, "an extent of more than 400 characters", {},
                        "name a part of it as a symbol of its own");
        out.form = Index(n);
      } else if (!values)
        throw problem("T0206", where, "a product of two axes, or of an axis and a symbol, is no coordinate",
                      {{"coordinates are sums of whole multiples of axes", where}},
                      "multiply index values: iota i * iota j, or use an axis of its own");
    }
    if ((op == "/" || op == "%") && a.is_extent() && b.is_extent() && !values) {
      if (!b.form->c.is_constant() || b.form->c.value() <= 0)
        throw problem("T0206", where, "an extent is divided by positive constants only",
                      {{"the divisor", eb.where}}, "divide by a number");
      const Extent q = floor_div(a.form->c, b.form->c.value());
      out.form = op == "/" ? Index(q) : minus(*a.form, times(Index(q), b.form->c.value(), where), where);
    } else if ((op == "/" || op == "%") && !values) {
      throw problem("T0206", where, "an axis is not divided here",
                    {{"only s / c and s % c of an axis s itself, with one constant c", where}},
                    "divide its index value: (iota i) " + op + " ..");
    }
  };
  if (a.form && b.form) {
    try {
      formed();
    } catch (Diagnostic&) { // a value may wrap where a coordinate may not
      if (!values) throw;
      out.form.reset();
    }
  }
  if (a.scalar && b.scalar) {
    const std::vector<const Expr*> from{&ea, &eb};
    Scalar x = *a.scalar, y = *b.scalar;
    const Type type = x.builder() ? x.type() : y.type();
    if (op == "+") out.scalar = apply(Op::add, {x, y}, from, where);
    if (op == "*") out.scalar = apply(Op::mul, {x, y}, from, where);
    if (op == "-")
      out.scalar = apply(
          Op::add, {x, y.builder() ? apply(Op::neg, {y}, {&eb}, where) : Scalar(-y.constant())}, from, where);
    if (op == "/" && type == Type::real) {
      const Scalar r = y.builder() ? apply(Op::recip, {y}, {&eb}, where) : Scalar(1 / y.constant());
      out.scalar = apply(Op::mul, {x, r}, from, where);
    } else if (op == "/") {
      out.scalar = apply(Op::div, {x, y}, from, where);
    }
    if (op == "%") out.scalar = apply(Op::mod, {x, y}, from, where);
    if (op == "&") out.scalar = apply(Op::bit_and, {x, y}, from, where);
    if (op == "|") out.scalar = apply(Op::bit_or, {x, y}, from, where);
    if (op == "^") out.scalar = apply(Op::bit_xor, {x, y}, from, where);
    if (op == "<<") out.scalar = apply(Op::shift_left, {x, y}, from, where);
    if (op == ">>") out.scalar = apply(Op::shift_right, {x, y}, from, where);
  }
  if (out.form || out.scalar) return out;
  // A computed index meets an axis: it becomes a stored map, and the sum a coordinate.
  auto computed = [](const Meaning& v) {
    return v.scalar && v.scalar->builder() && v.scalar->type() == Type::index;
  };
  if ((op == "+" || op == "-") &&
      ((a.form && !a.scalar && computed(b)) || (b.form && !b.scalar && computed(a)))) {
    const Index x = index(a, ea), y = index(b, eb);
    out.form = op == "+" ? plus(x, y, where) : minus(x, y, where);
    return out;
  }
  scalar(a, ea); // says which side is no value
  scalar(b, eb);
  throw problem("T0301", where, "`" + op + "` takes two numbers", {{"here", where}},
                "convert an operand: real(..) or index(..)");
}

Meaning Evaluator::compare(const Expr& e) {
  Meaning out;
  Meaning a = value(*e.args[0]);
  for (size_t k = 0; k < e.ops.size(); ++k) {
    Meaning b = value(*e.args[k + 1]);
    const Where where = joined(e.args[k]->where, e.args[k + 1]->where);
    const Meaning c = compare(e.ops[k], a, *e.args[k], b, *e.args[k + 1], where);
    out = k ? logic("and", out, e, c, e, where) : c;
    a = std::move(b);
  }
  return out;
}

Meaning Evaluator::compare(const std::string& op, const Meaning& a, const Expr& ea, const Meaning& b,
                           const Expr& eb, Where where) {
  Meaning out;
  auto computed = [](const Meaning& v) {
    return v.scalar && v.scalar->builder() && v.scalar->type() == Type::index;
  };
  const bool forms =
      (a.form && b.form) || (a.form && !a.scalar && computed(b)) || (b.form && !b.scalar && computed(a));
  if (forms) {
    const Index x = index(a, ea), y = index(b, eb);
    Guard g;
    const Index up = minus(y, x, where), down = minus(x, y, where); // x <= y, y <= x
    const Index strict = plus(up, Index(-1), where), strict_down = plus(down, Index(-1), where);
    if (op == "<=") g.pieces = {{up}};
    if (op == "<") g.pieces = {{strict}};
    if (op == ">=") g.pieces = {{down}};
    if (op == ">") g.pieces = {{strict_down}};
    if (op == "==") g.pieces = {{down, up}};
    if (op == "!=") g.pieces = {{strict}, {strict_down}};
    g.where = where;
    out.guard = std::move(g);
  }
  if (a.scalar && b.scalar && !(a.is_plain() && b.is_plain())) {
    const std::vector<const Expr*> ab{&ea, &eb}, ba{&eb, &ea};
    auto less = [&](const Scalar& x, const Scalar& y, const std::vector<const Expr*>& from) {
      return apply(Op::less, {x, y}, from, where);
    };
    auto equal = [&] { return apply(Op::equal, {*a.scalar, *b.scalar}, ab, where); };
    if (op == "<") out.scalar = less(*a.scalar, *b.scalar, ab);
    if (op == ">") out.scalar = less(*b.scalar, *a.scalar, ba);
    if (op == "==") out.scalar = equal();
    if (op == "!=") out.scalar = apply(Op::flip, {equal()}, {&ea}, where);
    if (op == "<=" || op == ">=") {
      const Scalar l = op == "<=" ? less(*a.scalar, *b.scalar, ab) : less(*b.scalar, *a.scalar, ba),
                   q = equal();
      out.scalar = apply(Op::either, {l, q}, ab, where);
    }
  }
  if (out.guard || out.scalar) return out;
  if (a.is_plain() && b.is_plain())
    throw problem("T0304", where, "two fractions are compared", {{"here", where}},
                  "compare a value with a number");
  if (a.guard || b.guard)
    throw problem("T0303", where, "a comparison of conditions", {{"here", where}}, "use and, or, not");
  scalar(a, ea);
  scalar(b, eb);
  throw problem("T0301", where, "these cannot be compared", {{"here", where}},
                "compare two values of one type");
}

Meaning Evaluator::logic(const std::string& op, const Meaning& a, const Expr& ea, const Meaning& b,
                         const Expr& eb, Where where) {
  Meaning out;
  if (a.guard && b.guard) {
    const size_t pieces = op == "or" ? a.guard->pieces.size() + b.guard->pieces.size()
                                     : a.guard->pieces.size() * b.guard->pieces.size();
    size_t bounds = 0;
    for (auto* g : {&*a.guard, &*b.guard})
      for (auto& p : g->pieces) bounds = std::max(bounds, p.size());
    if (pieces > most_alternatives || bounds > most_alternatives)
      throw problem("T0309", where, "a guard of more than 128 alternatives",
                    {{std::to_string(pieces) + " after multiplying out", where}},
                    "store a part of it as a bool tensor, and test that");
    Guard g = op == "or" ? *a.guard || *b.guard : *a.guard && *b.guard;
    g.where = where;
    out.guard = std::move(g);
    if (!a.scalar || !b.scalar) return out;
  }
  const Scalar x = condition(a, ea), y = condition(b, eb);
  out.scalar = apply(op == "or" ? Op::either : Op::both, {x, y}, {&ea, &eb}, where);
  return out;
}

Meaning Evaluator::unary(const Expr& e) {
  const Expr& x = *e.args[0];
  Meaning out;
  if (e.ops[0] == "not") {
    const Meaning v = value(x);
    if (v.guard && !v.scalar) { // De Morgan, while it stays small
      Guard all = always();
      bool small = true;
      for (auto& piece : v.guard->pieces) {
        Guard some;
        for (auto& i : piece) some.pieces.push_back({minus(Index(-1), i, e.where)});
        small = small && all.pieces.size() * some.pieces.size() <= 16;
        if (small) all = all && some;
      }
      all.where = e.where;
      if (small) out.guard = std::move(all);
      if (small) return out;
    }
    out.scalar = apply(Op::flip, {condition(v, x)}, {&x}, e.where);
    return out;
  }
  if (x.kind == Expr::number && x.name.suffix == 'i' && x.name.whole == uint64_t(1) << 63) {
    out.scalar = index_literal(m_.builder, INT64_MIN);
    return out;
  }
  const Meaning v = value(x);
  if (v.is_plain()) return number_value(-v.scalar->constant());
  if (x.kind == Expr::number ||
      (x.kind == Expr::word && !x.name.quoted && x.name.text == "MAX")) { // -3i is a literal
    const auto& t = m_.state().pool[v.scalar->id()];
    out.scalar =
        Scalar(&m_.builder, m_.state().pool.literal(whole_value(t.type, int64_t(-uint64_t(t.whole)))));
    if (v.form) out.form = times(*v.form, -1, e.where);
    return out;
  }
  if (v.form) {
    try {
      out.form = times(*v.form, -1, e.where);
    } catch (Diagnostic&) {
      if (!v.scalar) throw;
    }
  }
  if (v.scalar) out.scalar = apply(Op::neg, {*v.scalar}, {&x}, e.where);
  if (out.form || out.scalar) return out;
  scalar(v, x);
  throw problem("T0301", e.where, "`-` takes a number", {{"this is a condition", x.where}}, "use not");
}

Meaning Evaluator::mask(const Expr& e) {
  Meaning out;
  size_t k = 0;
  if (e.ops[0] == "else" && e.args[0]->kind == Expr::read) { // a pad: the read is absent out of range
    std::vector<Index> coords;
    for (auto& c : e.args[0]->args) coords.push_back(index(*c));
    const Meaning r = read(*e.args[0], coords, true);
    const Scalar pad = scalar(*e.args[1]);
    out = wrap(apply(Op::or_else, {*r.scalar, pad}, {e.args[0].get(), e.args[1].get()}, e.where));
    k = 1;
  } else {
    out = value(*e.args[0]);
  }
  for (; k < e.ops.size(); ++k) {
    const Expr& x = *e.args[k + 1];
    const Where where = joined(e.args[0]->where, x.where);
    const Scalar so_far = scalar(out, *e.args[0]);
    Meaning next;
    if (e.ops[k] == "if") {
      const Meaning v = value(x);
      Scalar c = v.scalar ? *v.scalar : Scalar(0);
      if (v.guard) {
        Meaning only_guard;
        only_guard.guard = v.guard;
        c = scalar(only_guard, x);
      } else {
        c = condition(v, x);
      }
      next.scalar = apply(Op::only, {c, so_far}, {&x, e.args[0].get()}, where);
    } else {
      next.scalar = apply(Op::or_else, {so_far, scalar(x)}, {e.args[0].get(), &x}, where);
    }
    out = std::move(next);
  }
  return out;
}

} // namespace tang::text
