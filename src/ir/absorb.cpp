#include "tang/ir/absorb.hpp"

#include <algorithm>
#include <limits>

#include "tang/expr/build.hpp"
#include "tang/expr/cases.hpp"
#include "tang/expr/diff.hpp"

namespace tang::ir {

using expr::Case;
using expr::E;

namespace {

struct Decision {
  Pool& p;
  const Monoid& m;
  const int n = int(m.size());
  using Names = std::function<Id(int)>;
  const Names xs = [this](int c) { return x(c); }, ys = [this](int c) { return y(c); },
              zs = [this](int c) { return z(c); };
  std::set<int> base = {};
  std::vector<Case> one = {}, two = {}, three = {}; // orders of so many elements' bases

  Type type(int c) const { return m.identity[size_t(c)].type; }

  Id x(int c) { return p.leaf(Op::var, type(c), 2 * c); }

  Id y(int c) { return p.leaf(Op::var, type(c), 2 * c + 1); }

  Id z(int c) { return p.leaf(Op::var, type(c), 2 * (c + n)); }


  Id rename(Id e, const Names& left, const Names& right) {
    std::map<Id, Id> to;
    for (int c = 0; c < n; ++c) {
      to[x(c)] = left(c);
      to[y(c)] = right(c);
    }
    return expr::substitute(p, e, to);
  }

  bool reads_only(Id e, const std::set<int>& allowed) const {
    for (Id v : expr::subterms(p, e, Op::var))
      if (!allowed.count(int(p[v].whole / 2) % n)) return false;
    return true;
  }

  // The literals that component c's values are compared with, its identity among them, in ascending order.
  std::vector<Id> landmarks(int c) {
    const Value id = m.identity[size_t(c)];
    std::set<Id> all{p.literal(id)};
    for (Id e : m.combine)
      for (Op op : {Op::less, Op::equal})
        for (Id k : expr::subterms(p, e, op))
          for (size_t w : {0, 1}) {
            const expr::Term& l = p[p[k].args[w]];
            const bool against_var = !expr::subterms(p, p[k].args[1 - w], Op::var).empty();
            if (l.op == Op::literal && l.type == id.type && against_var) all.insert(p[k].args[w]);
          }
    std::vector<Id> out(all.begin(), all.end());
    std::sort(out.begin(), out.end(),
              [&](Id a, Id b) { return id.type == Type::real ? p[a].r < p[b].r : p[a].whole < p[b].whole; });
    return out;
  }

  // The identity law on the carrier makes the identity an end of the order.
  bool identity_on_top(int c) {
    const Value id = m.identity[size_t(c)];
    return !expr::subterms(p, m.combine[size_t(c)], Op::min).empty() ||
           (id.type == Type::index && id.i == INT64_MAX) ||
           (id.type == Type::real && id.r == std::numeric_limits<double>::infinity());
  }

  std::vector<Case> cases(const std::set<int>& base, const std::vector<Names>& elements) {
    std::vector<Case> out{{}};
    for (int c : base) {
      std::vector<Id> terms;
      for (auto& e : elements) terms.push_back(e(c));
      std::vector<Case> mine;
      if (type(c) == Type::boolean) {
        for (size_t bits = 0; bits < size_t(1) << terms.size(); ++bits) {
          Case k;
          for (size_t t = 0; t < terms.size(); ++t)
            k.replace[terms[t]] = p.literal(expr::truth(bits >> t & 1));
          mine.push_back(k);
        }
      } else {
        const bool top = identity_on_top(c);
        mine = expr::orders(terms, landmarks(c), !top, top);
      }
      out = expr::joined(out, mine);
    }
    return out;
  }

  // Idempotent components that read nothing outside the base; grown down to a fixed point.
  std::set<int> find_base() {
    std::set<int> base;
    for (int c = 0; c < n; ++c)
      if (expr::equal_in(p, rename(m.combine[size_t(c)], xs, xs), x(c), cases({c}, {xs}))) base.insert(c);
    // A component may be idempotent only given the others (the index of an arg-max): test it with all of
    // them.
    std::set<int> everything;
    for (int c = 0; c < n; ++c) everything.insert(c);
    for (int c = 0; c < n && n <= 3; ++c)
      if (!base.count(c) &&
          expr::equal_in(p, rename(m.combine[size_t(c)], xs, xs), x(c), std::vector<Case>{{}}))
        base.insert(c);
    for (bool again = true; again;) {
      again = false;
      for (int c : std::set<int>(base))
        if (!reads_only(m.combine[size_t(c)], base)) {
          base.erase(c);
          again = true;
        }
    }
    return base;
  }

  // Why a on the left and b on the right are no action of the base, if they are none.
  std::optional<std::string> refuse_action(Id a, Id b) {
    const Names join = [&](int c) { return base.count(c) ? m.combine[size_t(c)] : y(c); };
    if (!expr::equal_in(p, a, rename(b, ys, xs), two))
      return "left and right act differently";
    if (!expr::equal_in(p, a, rename(a, xs, join), two))
      return "the factor is not a function of own base and new base";
    // act(b, b) is 1, or 0 where the injection of a term clears it.
    const Id unit = rename(a, xs, xs);
    for (auto& k : one)
      if (!expr::equal_in(p, unit, p.literal(1.0), k) && !expr::equal_in(p, unit, p.literal(0.0), k))
        return "act(b, b) is neither 0 nor 1";
    // act(a, b) act(b, c) = act(a, c) where act(a, a) = 1: this proves the associativity of the added
    // component.
    const Names wide = [&](int q) { return base.count(q) ? rename(m.combine[size_t(q)], ys, zs) : z(q); };
    const E kept{&p, unit}, first{&p, rename(a, xs, join)}, then{&p, rename(a, join, zs)},
        whole_way{&p, rename(a, xs, wide)};
    const E left = kept * first, both_steps = left * then, right = kept * whole_way;
    if (!expr::equal_in(p, both_steps.id, right.id, three))
      return "act(a,b) act(b,c) is not act(a,c)";
    for (auto& k : two) {
      const Id at = expr::simplify(p, expr::substitute(p, a, k.replace), k.facts);
      if (!expr::finite(p, at)) return "act is not finite: " + p.print(at);
    }
    return {};
  }

  Result<Absorb> run() {
    base = find_base();
    // Rank only what the added components look at: the rest of the base needs no cases.
    one = cases(base, {xs}), two = cases(base, {xs, ys}), three = cases(base, {xs, ys, zs});
    for (int c : base)
      if (!expr::equal_in(p, m.combine[size_t(c)], rename(m.combine[size_t(c)], ys, xs), two))
        return Refusal{"the base is not commutative"};
    Absorb plan;
    std::set<std::pair<Id, Id>> acts; // of the left and of the right side, proved
    plan.base.assign(base.begin(), base.end());
    for (int c = 0; c < n; ++c) {
      if (base.count(c)) continue;
      const std::string who = "component " + std::to_string(c) + ": ";
      if (type(c) != Type::real) return Refusal{who + "not real, so not a sum"};
      const Id e = m.combine[size_t(c)];
      const auto dx = expr::linear_factor(p, e, x(c)), dy = expr::linear_factor(p, e, y(c));
      if (!dx || !dy) return Refusal{who + "not linear (a condition, max or min reads it)"};
      const Id a = expr::simplify(p, *dx), b = expr::simplify(p, *dy);
      if (!reads_only(a, base) || !reads_only(b, base))
        return Refusal{who + "its factor " + p.print(a) + " reads more than the base"};
      const Id rest = expr::substitute(p, e, {{x(c), p.literal(0.0)}, {y(c), p.literal(0.0)}});
      if (!expr::equal_in(p, rest, p.literal(0.0), two))
        return Refusal{who + "not diagonal: at zero it leaves " + p.print(expr::simplify(p, rest))};
      if (acts.insert({a, b}).second) // components mostly act alike
        if (auto wrong = refuse_action(a, b)) return Refusal{who + *wrong};
      plan.added.push_back(c);
      plan.act[c] = *dx; // as written: the normal form would distribute exp2's argument and lose digits
    }
    if (plan.added.empty()) return Refusal{"nothing is added: it is its own base"};
    return plan;
  }
};
} // namespace

struct Decided {
  Monoid monoid;
  Result<Absorb> absorbs;
};

Result<Absorb> absorbing(Pool& p, const Monoid& m) { return Decision{p, m}.run(); }

const Result<Absorb>& absorbing(Graph& g, const Monoid& m) {
  for (auto& known : g.decided_)
    if (same(known->monoid, m)) return known->absorbs;
  g.decided_.push_back(std::make_shared<const Decided>(Decided{m, absorbing(g.pool, m)}));
  return g.decided_.back()->absorbs;
}

bool is_plain(const Pool& p, const Monoid& m, Op op) {
  if (m.size() != 1) return false;
  const expr::Term& t = p[m.combine[0]];
  if (t.op != op || t.arity() != 2) return false;
  return p[t.args[0]].op == Op::var && p[t.args[1]].op == Op::var && t.args[0] != t.args[1];
}

} // namespace tang::ir
