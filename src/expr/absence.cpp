#include "tang/expr/absence.hpp"

#include <algorithm>

#include "tang/expr/simplify.hpp"

namespace tang::expr {

Id both(Pool& p, Id a, Id b) {
  if (a == yes(p) || a == b) return b;
  if (b == yes(p)) return a;
  return simplify(p, p.make(Op::both, {a, b}));
}

namespace {
struct Splitter {
  Pool& p;
  const MayMiss& may_miss;
  std::unordered_map<Id, Present> memo = {};

  Present operator()(Id id) {
    if (!p[id].arity()) return {yes(p), id};
    if (auto it = memo.find(id); it != memo.end()) return it->second;
    const Present out = split(id, p[id]);
    memo.insert_or_assign(id, out);
    return out;
  }

  // One of two conditions is enough, so neither may be absent: what it reads may be.
  Id total(Id when) {
    const bool reads = !subterms(p, when, Op::arg).empty();
    return reads ? p.make(Op::or_else, {when, p.literal(truth(false))}) : when;
  }

  bool misses(Id id) {
    if (!may_miss) return false;
    const auto reads = subterms(p, id, Op::arg);
    return std::any_of(reads.begin(), reads.end(), may_miss);
  }

  Present split(Id id, const Term t) {
    std::vector<Present> a;
    for (int k = 0; k < t.arity(); ++k) a.push_back((*this)(t.args[size_t(k)]));
    if (t.op == Op::only) {
      const Id guard = both(p, a[0].when, a[0].value);
      return {both(p, guard, a[1].when), a[1].value};
    }
    if (t.op == Op::or_else) {
      const bool last = a[1].when == yes(p);
      if (misses(t.args[0])) return {yes(p), last ? p.make(Op::or_else, {t.args[0], a[1].value}) : id};
      if (a[0].when == yes(p)) return a[0];
      const Id when = last ? yes(p) : p.make(Op::either, {total(a[0].when), total(a[1].when)});
      const Id first = p.make(Op::only, {a[0].when, a[0].value});
      return {when, p.make(Op::or_else, {first, a[1].value})};
    }
    Id when = a[0].when;
    if (t.op == Op::select && a[1].when != a[2].when) {
      const Id branch = p.make(Op::select, {a[0].value, a[1].when, a[2].when});
      when = both(p, when, branch);
    } else {
      for (size_t k = 1; k < a.size(); ++k) when = both(p, when, a[k].when);
    }
    std::vector<Id> v;
    for (auto& x : a) v.push_back(x.value);
    return {when, p.make(t.op, v)};
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

Id conjunction(Pool& p, const std::vector<Id>& parts) {
  Id out = yes(p);
  for (Id x : parts) out = both(p, out, x);
  return out;
}

} // namespace tang::expr
