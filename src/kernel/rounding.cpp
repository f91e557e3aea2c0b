#include "tang/kernel/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/ranges.hpp"

namespace tang::kernel {

using expr::Op;
using expr::Term;

double Rounding::bound() const { return std::expm1(growth); }

namespace {
constexpr double elementary = 6; // halves of a unit: exp2, log2, sin and atan2 of every target are that exact

Rounding unknown(const std::string& why) { return {0, false, false, why}; }

// Both are possible.
Rounding either(const Rounding& a, const Rounding& b) {
  if (!a.known()) return a;
  if (!b.known()) return b;
  return {std::max(a.growth, b.growth), a.positive && b.positive, a.solid && b.solid, ""};
}

Rounding sum(const Rounding& a, const Rounding& b, double unit) {
  Rounding r = either(a, b);
  r.growth += unit;
  r.solid = r.solid && r.positive;
  return r;
}

Rounding product(const Rounding& a, const Rounding& b, bool square, double unit) {
  if (!a.known()) return a;
  if (!b.known()) return b;
  return {a.growth + b.growth + unit, square || (a.positive && b.positive), a.solid && b.solid, ""};
}

// Of 1 / x, where x is not 0: 1 / (1 - d) for a relative error d.
Rounding inverse(const Rounding& x, double unit) {
  if (!x.known()) return x;
  if (x.growth > 0 && !x.solid) return unknown("a division by a sum whose terms may cancel");
  if (x.bound() >= 1) return unknown("a division by a value that may be off by all of it");
  return {-std::log1p(-x.bound()) + unit, x.positive, true, ""};
}

class Walk {
public:
  Walk(const Kernel& k, int lanes, Roundings& m) : k_(k), lanes_(lanes), m_(m), ranges_(k.vars.size()) {
    unit_ = std::log1p(k.compute == Format::f64 ? 0x1p-53 : 0x1p-24);
    for (auto& g : k.grid) ranges_[size_t(g.var)] = {0, std::max<int64_t>(0, g.extent - 1)};
  }

  void block(const Block& b) {
    for (auto& s : b)
      std::visit(Match{[&](const Apply& x) { apply(x); }, [&](const Fold& x) { fold(x); },
                       [&](const Contract& x) { contract(x); }, [](const Barrier&) {},
                       [](const Let&) {}, [&](const If& x) { block(x.then); },
                       [&](const Loop& x) {
                         rounds(x.var, {{x.begin, x.end, true}}, x.step, [&] { block(x.body); });
                       },
                       [&](const Pipeline& x) {
                         rounds(x.var, x.segments, x.step, [&] { block(x.operands), block(x.body); });
                       }},
                 s.node);
  }

private:
  // At most so many rounds; without a limit to them the growth is not known either.
  void rounds(Var v, const std::vector<Segment>& segments, int64_t step, const std::function<void()>& once) {
    int64_t times = 0;
    Range all{INT64_MAX, INT64_MIN};
    for (auto& s : segments) {
      const Range lo = range(s.begin, ranges_), hi = range(s.end, ranges_);
      if (!lo.known() || !hi.known()) return repeat(INT64_MAX, m_, [&](Roundings&) { once(); });
      times += std::max<int64_t>(0, ceil_div(hi.hi - lo.lo, step));
      all = {std::min(all.lo, lo.lo), std::max(all.hi, hi.hi)};
    }
    ranges_[size_t(v)] = all;
    repeat(times, m_, [&](Roundings&) { once(); });
  }

  Rounding read(int memory) const {
    const auto& known = m_[size_t(memory)];
    return known ? *known : Rounding{};
  }

  void write(int memory, Rounding r, bool afresh = false) {
    const auto& f = expr::row(k_.memories[size_t(memory)].format);
    if (f.type != Type::real) r = {0, false, true, r.why};
    else if (k_.memories[size_t(memory)].pieces > 1) {} // what the pieces leave out is counted where they are multiplied
    else if (f.mantissa < expr::row(k_.compute).mantissa) r.growth += std::log1p(std::ldexp(1.0, -f.mantissa - 1));
    auto& to = m_[size_t(memory)];
    to = to && !afresh ? either(*to, r) : r;
  }

  // The rounding of each root; `state`: of a combine's operands.
  std::vector<Rounding> terms(const Pool& p, const std::vector<Id>& roots, const Body* body,
                              const std::vector<Rounding>& state = {}) {
    std::map<Id, Rounding> at;
    for (Id id : expr::schedule(p, roots)) {
      const Term& t = p[id];
      if (t.op == Op::arg) at[id] = read(body->refs[size_t(t.whole)].memory);
      else if (t.op == Op::var) at[id] = state[size_t(t.whole)];
      else at[id] = term(p, t, at);
    }
    std::vector<Rounding> out;
    for (Id id : roots) out.push_back(at.at(id));
    return out;
  }

  Rounding term(const Pool& p, const Term& t, const std::map<Id, Rounding>& at) const {
    auto in = [&](size_t k) -> const Rounding& { return at.at(t.args[k]); };
    auto of = [&](size_t k) { return p[t.args[k]].type; };
    bool exact = true; // every operand is
    for (int k = 0; k < t.arity(); ++k) {
      if (!in(size_t(k)).known()) return in(size_t(k));
      exact &= in(size_t(k)).growth == 0;
    }
    if (t.op == Op::literal) {
      const bool fits = t.type != Type::real || k_.compute == Format::f64 || double(float(t.r)) == t.r || std::isnan(t.r);
      return {fits ? 0 : unit_, t.type == Type::real && t.r >= 0, true, ""};
    }
    if (t.op == Op::select)
      return in(0).growth > 0 ? unknown("a choice by a rounded value") : either(in(1), in(2));
    if (t.type != Type::real) return exact ? Rounding{} : unknown(std::string("`") + row(t.op).name + "` of a rounded value");
    switch (t.op) {
    case Op::add: return sum(in(0), in(1), unit_);
    case Op::mul: return product(in(0), in(1), t.args[0] == t.args[1], unit_);
    case Op::neg: return {in(0).growth, false, in(0).solid, ""};
    case Op::max: return extreme(in(0), in(1), in(0).positive || in(1).positive);
    case Op::min: return extreme(in(0), in(1), in(0).positive && in(1).positive);
    case Op::recip: return inverse(in(0), unit_);
    case Op::ratio: {
      const Rounding r = inverse(in(1), unit_);
      return r.known() ? product(in(0), r, false, 0) : r;
    }
    case Op::sqrt:
      if (!exact && !in(0).solid) return unknown("the root of a sum whose terms may cancel");
      return {in(0).growth + unit_, true, true, ""};
    case Op::to_real: return of(0) == Type::boolean ? Rounding{0, true, true, ""} : Rounding{unit_, false, true, ""};
    default:
      if (!exact) return unknown(std::string("`") + row(t.op).name + "` of a rounded value");
      return {t.op == Op::floor ? 0 : elementary * unit_, t.op == Op::exp2, true, ""};
    }
  }

  static Rounding extreme(const Rounding& a, const Rounding& b, bool positive) {
    Rounding r = either(a, b);
    r.solid = r.solid && r.positive;
    r.positive = positive;
    return r;
  }

  bool decided(const Body& b) { // which points exist does not depend on rounded values
    if (!b.when) return true;
    const Rounding r = terms(*k_.pool, {*b.when}, &b)[0];
    return r.known() && r.growth == 0;
  }

  static int64_t points(const std::vector<TileAxis>& axes) {
    int64_t n = 1;
    for (auto& a : axes) n = mul_saturated(n, a.extent);
    return n;
  }

  void apply(const Apply& x) {
    std::vector<Rounding> out = terms(*k_.pool, x.body.values, &x.body);
    for (size_t k = 0; k < out.size(); ++k) {
      if (!decided(x.body)) out[k] = unknown("a condition on a rounded value");
      const Memory& m = k_.memories[size_t(x.dst[k].memory)];
      const bool all = x.bounds.empty() && x.partial.empty() && !x.body.when && points(x.axes) == m.size();
      write(x.dst[k].memory, out[k], all && m.home != Home::global);
    }
  }

  void fold(const Fold& x) {
    const std::vector<Rounding> lift = terms(*k_.pool, x.body.values, &x.body);
    Roundings state;
    for (auto& e : x.identity) state.push_back(Rounding{0, e.type == Type::real && e.r >= 0, true, ""});
    repeat(chain(x), state, [&](Roundings& s) { join(x, s, lift); });
    for (int64_t step = 1; step < chains(x); step *= 2) join(x, state, settled(state));
    if (x.accumulate) {
      Roundings old;
      for (auto& d : x.dst) old.push_back(read(d.memory));
      join(x, old, settled(state));
      state = old;
    }
    for (size_t c = 0; c < state.size(); ++c)
      write(x.dst[c].memory, decided(x.body) ? *state[c] : unknown("a condition on a rounded value"));
  }

  bool dealt(const Fold& x) const { return k_.lanes > 1 || x.deal.team; }

  int64_t lanes(const Fold& x) const { return !dealt(x) && x.vector >= int(x.kept.size()) ? lanes_ : 1; }

  int64_t chains(const Fold& x) const { return dealt(x) ? 1 : lanes(x) * std::max(1, x.ways); }

  // Terms of the longest chain. What is left of the innermost axis after whole rounds goes to one chain, a vector at a
  // time; lanes that share the terms among them in whatever way make no chain longer than all of them.
  int64_t chain(const Fold& x) const {
    const int64_t all = points(x.folded);
    if (x.folded.empty() || dealt(x) || all == 0) return all;
    const size_t v = x.vector >= int(x.kept.size()) ? size_t(x.vector) - x.kept.size() : x.folded.size() - 1;
    const int64_t inner = x.folded[v].extent, left = inner % chains(x);
    return mul_saturated(all / inner, inner / chains(x) + ceil_div(left, lanes(x)));
  }

  static std::vector<Rounding> settled(const Roundings& s) {
    std::vector<Rounding> out;
    for (auto& r : s) out.push_back(*r);
    return out;
  }

  // a := combine(a, b)
  void join(const Fold& x, Roundings& a, const std::vector<Rounding>& b) {
    std::vector<Rounding> both;
    for (size_t c = 0; c < b.size(); ++c) both.push_back(*a[c]), both.push_back(b[c]);
    const std::vector<Rounding> out = terms(*k_.pool, x.combine, nullptr, both);
    for (size_t c = 0; c < out.size(); ++c) {
      a[c] = out[c];
      if (x.held && x.identity[c].type == Type::real) a[c]->growth += std::log1p(std::ldexp(1.0, -expr::row(*x.held).mantissa - 1));
    }
  }

  // The contractions of all pairs of pieces i + j < n are one product of a and b. With u = 2^-8, half a unit of 8 bits,
  // n pieces of a are a to within u^n |a|, and piece i is at most u^i (1 + u) of it: a b is missed by 2 u^n from the
  // ends and by n - 1 pairs of u^n each, to first order. Each contraction of the pairs counts all of it.
  double left_out(const Contract& x) const {
    const int n = std::max(k_.memories[size_t(x.a.memory)].pieces, k_.memories[size_t(x.b.memory)].pieces);
    return n < 2 ? 0 : std::log1p((n + 1) * std::ldexp(1 + 0x1p-6, -8 * n));
  }

  void contract(const Contract& x) {
    const Rounding old = x.accumulate ? read(x.dst.memory) : Rounding{0, true, true, ""};
    Rounding r = product(read(x.a.memory), read(x.b.memory), false, unit_);
    if (r.known()) {
      r.growth += left_out(x);
      r.growth += double(points(x.k)) * unit_;
      r.solid = r.solid && r.positive;
      r = sum(old, r, unit_);
    }
    write(x.dst.memory, r);
  }

  const Kernel& k_;
  const int64_t lanes_;
  Roundings& m_;
  std::vector<Range> ranges_;
  double unit_ = 0;
};
} // namespace

void repeat(int64_t times, Roundings& m, const std::function<void(Roundings&)>& once) {
  constexpr int64_t exact = 4; // rounds that are followed one by one: what is carried has settled then
  Roundings last, before;
  for (int64_t n = 0; n < std::min(times, exact + 1); ++n) {
    before = std::move(last);
    last = m;
    once(m);
  }
  if (times <= exact + 1) return;
  // From round to round no growth rises by more than the largest rise of the round before: sums and products of what
  // is carried move with it. What rises faster from round to round is no such thing.
  auto growth = [](const std::optional<Rounding>& r) { return r ? r->growth : 0; };
  double rise = 0, later = 0;
  for (size_t k = 0; k < m.size(); ++k) {
    rise = std::max(rise, growth(last[k]) - growth(before[k]));
    later = std::max(later, growth(m[k]) - growth(last[k]));
  }
  const bool bends = later > rise * (1 + 1e-9);
  for (size_t k = 0; k < m.size(); ++k) {
    if (growth(m[k]) <= growth(last[k]) || !m[k]->known()) continue;
    if (bends) m[k]->why = "a value that is multiplied by itself in a loop";
    else if (times == INT64_MAX) m[k]->why = "a loop of unknown length";
    else m[k]->growth += double(times - exact - 1) * later;
  }
}

void follow(const Kernel& k, int lanes, Roundings& memories) {
  memories.resize(k.memories.size());
  Walk(k, k.compute == Format::f64 ? std::max(1, lanes / 2) : lanes, memories).block(k.body);
}

} // namespace tang::kernel
