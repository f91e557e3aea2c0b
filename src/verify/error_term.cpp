#include "tang/verify/error_term.hpp"

#include <cmath>
#include <limits>

#include "tang/expr/absence.hpp"

namespace tang::verify {

using namespace expr;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

E times(E x, E e) { // 0 errors of infinite values are 0
  const E zero = lit(*e.pool, 0);
  return select(e == zero, zero, abs(x) * e);
}

E decided(E uncertain) { return select(uncertain, lit(*uncertain.pool, inf), lit(*uncertain.pool, 0)); }
} // namespace

E ErrorTerms::error(Id id) {
  const auto e = known(id);
  return e ? *e : at(0);
}

std::optional<E> ErrorTerms::known(Id id) {
  const auto e = of(id);
  return e ? std::optional(E{&p_, *e}) : std::nullopt;
}

std::optional<Id> ErrorTerms::of(Id root) {
  for (Id id : schedule(p_, {root})) {
    if (memo_.count(id)) continue;
    const Term t = p_[id];
    std::optional<Id> out;
    if (t.op == Op::literal) {
      const double gap = t.type == Type::real && std::isfinite(t.r) ? std::fabs(t.r) * a_.unit : 0;
      if (gap > 0 && double(float(t.r)) != t.r) out = p_.literal(gap);
    } else if (t.op == Op::arg || t.op == Op::var || t.op == Op::holds) {
      auto& table = t.op == Op::arg ? leaves_.arg : t.op == Op::var ? leaves_.var : leaves_.holds;
      if (auto it = table.find(t.whole); it != table.end()) out = it->second;
    } else if (t.arity()) {
      if (const auto e = computed(id, t)) out = e->id;
    }
    memo_[id] = out;
  }
  return memo_.at(root);
}

// A rounded operation whose operands' errors add up to `e`.
E ErrorTerms::rounded(Id id, E e, double relative) {
  const E v = abs(value(id));
  return select(v == at(inf), select(e < at(inf), at(0), at(inf)),
                select(v + e <= at(a_.largest), e + v * relative + a_.tiny, at(inf)));
}

E ErrorTerms::elementary(Id id, const Term& t, E e) {
  const E a = value(t.args[0]), v = value(id);
  const E exact = e == at(0);
  switch (t.op) {
  case Op::exp2: return rounded(id, select(exact, at(0), v * e * exp2(e)), a_.elementary);
  case Op::log2:
    return rounded(id, select(exact, at(0), select(e < a, e * recip((a - e) * ln_2), at(inf))),
                   a_.elementary);
  case Op::sqrt:
    return rounded(id, select(exact, at(0), select(e <= a, min(e * recip(sqrt(a)), sqrt(e)), at(inf))),
                   a_.elementary);
  case Op::sin: return rounded(id, min(e, at(2)), a_.elementary);
  default: // recip
    return rounded(id, select(exact, at(0), select(e < abs(a), e * recip(abs(a) * (abs(a) - e)), at(inf))),
                   a_.elementary);
  }
}

// One of two values, where it is not certain which.
E ErrorTerms::branch(const Term& t) {
  const E c = value(t.args[0]), a = value(t.args[1]), b = value(t.args[2]);
  const E ea = error(t.args[1]), eb = error(t.args[2]);
  const E sure = select(c, ea, eb);
  const auto tc = known(t.args[0]);
  if (!tc) return sure;
  const E either = t.type == Type::real ? max(ea, eb) + select(a == b, at(0), abs(a - b))
                                        : max(max(ea, eb), decided(!(a == b)));
  return select(*tc == at(0), sure, total_ ? either : or_else(either, at(inf)));
}

// Conditions that are certain and read nothing first: what is read counts only where they hold, for elsewhere
// it may be out of range. One that is uncertain decides nothing by being false.
std::optional<E> ErrorTerms::together(Id id) {
  std::vector<Id> parts{id};
  std::optional<E> errors, guard;
  auto only_where = [&](Id x) { guard = guard ? *guard && value(x) : value(x); };
  for (size_t k = 0; k < parts.size(); ++k) {
    const Term t = p_[parts[k]];
    if (t.op == Op::both) {
      parts.push_back(t.args[0]), parts.push_back(t.args[1]);
      continue;
    }
    const auto e = known(parts[k]);
    if (e) errors = errors ? max(*errors, *e) : *e;
    if (!e && subterms(p_, parts[k], Op::arg).empty()) only_where(parts[k]);
    if (const auto it = leaves_.certain.find(t.whole); e && t.op == Op::holds && it != leaves_.certain.end())
      only_where(it->second);
  }
  return errors && guard ? std::optional(select(*guard, *errors, at(0))) : errors;
}

std::optional<E> ErrorTerms::whole(Id, const Term& t) {
  std::optional<E> out;
  for (int k = 0; k < t.arity(); ++k)
    if (const auto e = known(t.args[size_t(k)])) out = out ? max(*out, *e) : *e;
  return out;
}

std::optional<E> ErrorTerms::computed(Id id, const Term& t) {
  const Id x = t.args[0], y = t.arity() > 1 ? t.args[1] : x;
  const auto ex = known(x), ey = known(y);
  const bool exact = !ex && !ey && (t.arity() < 3 || !known(t.args[2]));
  switch (t.op) {
  case Op::select: return exact ? std::nullopt : std::optional(branch(t));
  case Op::only: {
    if (exact) return std::nullopt;
    return only(value(x), ex ? error(y) + *ex : error(y));
  }
  case Op::or_else: {
    if (exact) return std::nullopt;
    const E a = value(x), r = a.type() == Type::real ? a : to_real(a);
    const E there = max(min(r, at(0)), at(0)); // exists where x does
    const E sure = or_else(error(x) + select(is_nan(there), at(0), there), error(y));
    const auto doubt = known(present(p_, x).when); // whether x exists may depend on a rounded value
    if (!doubt) return sure;
    return select((total_ ? *doubt : or_else(*doubt, at(inf))) == at(0), sure, at(inf));
  }
  case Op::neg: return t.type == Type::real ? ex : whole(id, t);
  case Op::less:
  case Op::equal: {
    if (exact) return std::nullopt;
    const E a = value(x), b = value(y);
    if (a.type() != Type::real) return whole(id, t);
    const E e = error(x) + error(y);
    return decided(select(a == b, at(0) < e, abs(a - b) <= e));
  }
  case Op::both: return exact ? std::nullopt : together(id);
  case Op::is_nan: return exact ? std::nullopt : std::optional(decided(!(*ex < at(inf))));
  case Op::floor: {
    if (exact) return std::nullopt;
    const E a = value(x);
    return max(floor(a + *ex) - floor(a), floor(a) - floor(a - *ex));
  }
  case Op::max:
  case Op::min: return exact ? std::nullopt : std::optional(max(error(x), error(y)));
  case Op::to_real: {
    const E v = abs(value(id));
    const E e = select(v < at(1 / a_.unit), at(0), v * a_.unit);
    return ex ? *ex + e : e;
  }
  case Op::to_index:
  case Op::to_bits: {
    if (exact) return std::nullopt;
    if (p_[x].type != Type::real) return whole(id, t);
    return decided(!(floor(value(x) - *ex) == floor(value(x) + *ex)));
  }
  default: break;
  }
  if (t.type != Type::real) return exact ? std::nullopt : whole(id, t);
  const E a = value(x), b = value(y);
  switch (t.op) {
  case Op::add: return rounded(id, error(x) + error(y), a_.unit);
  case Op::mul:
    return rounded(id, exact ? at(0) : times(a, error(y)) + times(b, error(x)) + times(error(x), error(y)),
                   a_.unit);
  case Op::ratio: {
    const E el = error(y), l = abs(b);
    const E far = (times(a, el) + times(l, error(x))) * recip(l * (l - el));
    return select(b == at(0), select(el == at(0), at(0), at(inf)),
                  rounded(id, exact ? at(0) : select(el < l, far, at(inf)), a_.elementary));
  }
  case Op::atan2: {
    const E both = error(x) + error(y), r = max(abs(a), abs(b)) - both;
    const E cut = both > at(0) && (b <= error(y) && abs(a) <= error(x));
    return rounded(id, select(both == at(0), at(0), select(cut || r <= at(0), at(inf), both * recip(r))),
                   a_.elementary);
  }
  default: return elementary(id, t, error(x));
  }
}

} // namespace tang::verify
