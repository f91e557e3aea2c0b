#include "tang/expr/absence.hpp"

#include <algorithm>

#include "tang/expr/simplify.hpp"
#include "tang/expr/term_table.hpp"

namespace tang::expr {

namespace {
bool misses(const Pool& p, Id id, const MayMiss& may_miss) {
  if (!may_miss) return false;
  const auto reads = subterms(p, id, Op::arg);
  return std::any_of(reads.begin(), reads.end(), may_miss);
}
} // namespace

Id both(Pool& p, Id a, Id b, const MayMiss& may_miss) {
  if (a == yes(p) || a == b) return b;
  if (b == yes(p)) return a;
  const Id out = p.make(Op::both, {a, b});
  return misses(p, out, may_miss) ? out : simplify(p, out);
}

namespace {
struct Splitter {
  Pool& p;
  const MayMiss& may_miss;
  TermTable whens = {}, values = {}; // of terms with operands

  Present operator()(Id root) {
    walk(p, root, [&](Id id) {
      if (!p[id].arity()) return;
      const Present is = split(id, p[id]);
      whens.set(id, is.when), values.set(id, is.value);
    });
    return at(root);
  }

  Present at(Id id) const { return whens.has(id) ? Present{whens[id], values[id]} : Present{yes(p), id}; }

  // One of two conditions is enough, so neither may be absent: what it reads may be, where the bounds beside
  // it fail.
  Id total(Id when) {
    std::vector<Id> bounds, reading;
    for (Id x : conjuncts(p, when)) (subterms(p, x, Op::arg).empty() ? bounds : reading).push_back(x);
    if (reading.empty()) return when;
    Id read = conjunction(p, reading, may_miss);
    if (!bounds.empty()) read = p.make(Op::only, {conjunction(p, bounds, may_miss), read});
    return p.make(Op::or_else, {read, p.literal(truth(false))});
  }

  Id both(Id x, Id y) { return expr::both(p, x, y, may_miss); }

  Present split(Id id, const Term t) {
    const size_t n = size_t(t.arity());
    std::array<Present, 3> a{};
    for (size_t k = 0; k < n; ++k) a[k] = at(t.args[k]);
    if (t.op == Op::only) {
      const Id guard = both(a[0].when, a[0].value);
      return {both(guard, a[1].when), a[1].value};
    }
    if (t.op == Op::or_else) {
      const bool last = a[1].when == yes(p);
      if (misses(p, t.args[0], may_miss))
        return {yes(p), last ? p.make(Op::or_else, {t.args[0], a[1].value}) : id};
      if (a[0].when == yes(p)) return a[0];
      const Id when = last ? yes(p) : p.make(Op::either, {total(a[0].when), total(a[1].when)});
      const Id first = p.make(Op::only, {a[0].when, a[0].value});
      return {when, p.make(Op::or_else, {first, a[1].value})};
    }
    Id when = a[0].when;
    if (t.op == Op::select && a[1].when != a[2].when) {
      const Id branch = p.make(Op::select, {a[0].value, a[1].when, a[2].when});
      when = both(when, branch);
    } else {
      for (size_t k = 1; k < n; ++k) when = both(when, a[k].when);
    }
    return {when, p.over(id, {a[0].value, a[1].value, a[2].value})};
  }
};

void collect(const Pool& p, Id id, std::vector<Id>& out) {
  if (p[id].op == Op::both) {
    collect(p, p[id].args[0], out);
    collect(p, p[id].args[1], out);
  } else if (!(p[id].op == Op::literal && p[id].whole)) {
    out.push_back(id);
  }
}
} // namespace

Present present(Pool& p, Id id, const MayMiss& may_miss) { return Splitter{p, may_miss}(id); }

std::vector<Id> conjuncts(const Pool& p, Id id) {
  std::vector<Id> out;
  collect(p, id, out);
  std::sort(out.begin(), out.end(), [&](Id a, Id b) { return p.before(a, b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Id conjunction(Pool& p, const std::vector<Id>& parts, const MayMiss& may_miss) {
  Id out = yes(p);
  for (Id x : parts) out = both(p, out, x, may_miss);
  return out;
}

} // namespace tang::expr
