#include "tang/kernel/ranges.hpp"

#include <algorithm>
#include <map>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"

namespace tang::kernel {

using expr::Op;
using expr::Term;

Range range(const Affine& a, const std::vector<Range>& vars) {
  Range r{a.c, a.c};
  for (auto& [v, c] : a.terms) {
    const Range& x = vars[size_t(v)];
    if (!x.known()) return {};
    const auto p = mul_saturated(c, x.lo), q = mul_saturated(c, x.hi);
    r.lo = add_saturated(r.lo, std::min(p, q));
    r.hi = add_saturated(r.hi, std::max(p, q));
  }
  return r;
}

Range grid_range(const GridAxis& g) { return {0, std::max<int64_t>(0, g.extent - 1) / g.step * g.step}; }

Range format_range(Format f) {
  const auto& row = expr::row(f);
  if (row.type == Type::boolean) return {0, 1};
  if (row.type == Type::real || row.bits >= 64) return {};
  if (row.type == Type::bits) return {0, (int64_t(1) << row.bits) - 1};
  return {-(int64_t(1) << (row.bits - 1)), (int64_t(1) << (row.bits - 1)) - 1};
}

Range term_range(const Pool& p, const Term& t, const std::function<Range(size_t)>& in) {
  constexpr int64_t big = int64_t(1) << 30;
  auto small = [](const Range& r) { return r.known() && r.lo > -big && r.hi < big; };
  auto whole = [&](size_t k) { return p[t.args[k]].op == Op::literal ? std::optional(p[t.args[k]].whole) : std::nullopt; };
  if (t.op == Op::literal) return t.whole == INT64_MAX ? Range{} : Range{t.whole, t.whole};
  if (t.op == Op::select) return {std::min(in(1).lo, in(2).lo), std::max(in(1).hi, in(2).hi)};
  if (t.op == Op::to_index && p[t.args[0]].type == Type::boolean) return {0, 1};
  if (t.arity() == 1) return t.op == Op::neg && small(in(0)) ? Range{-in(0).hi, -in(0).lo} : Range{};
  if (t.arity() != 2) return {};
  const Range a = in(0), b = in(1);
  switch (t.op) {
  case Op::max:
  case Op::min: return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
  case Op::add: return small(a) && small(b) ? Range{a.lo + b.lo, a.hi + b.hi} : Range{};
  case Op::mul: {
    if (!small(a) || !small(b)) return {};
    const auto [lo, hi] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
    return {lo, hi};
  }
  case Op::mod: return whole(1).value_or(0) > 0 ? Range{0, *whole(1) - 1} : Range{};
  case Op::div:
    if (!a.known() || whole(1).value_or(0) < 1) return {};
    return {floor_div(a.lo, *whole(1)), floor_div(a.hi, *whole(1))};
  default: return {};
  }
}

namespace {
constexpr Range word32{INT32_MIN, INT32_MAX}, stored{-(int64_t(1) << 29), int64_t(1) << 29};

bool fits_32(const Range& r) { return r.known() && r.lo >= word32.lo && r.hi <= word32.hi; }

class RangeWalk {
public:
  explicit RangeWalk(const Kernel& k) : k_(k), vars_(k.vars.size()) {}

  std::optional<std::string> run() {
    for (auto& m : k_.memories)
      if (m.size() > word32.hi) say(m.name + " has more elements than 32 bits count");
    if (workgroups(k_) > word32.hi) say("there are more workgroups than 32 bits count");
    for (auto& g : k_.grid) vars_[size_t(g.var)] = grid_range(g);
    block(k_.body);
    return why_;
  }

private:
  void say(const std::string& s) {
    if (!why_) why_ = s;
  }

  void form(const Affine& a, const char* what) {
    if (!fits_32(range(a, vars_))) say(std::string(what) + " may not fit 32 bits");
  }

  void axes(const std::vector<TileAxis>& all) {
    for (auto& a : all) vars_[size_t(a.var)] = {0, std::max<int64_t>(0, a.extent - 1)};
  }

  void ref(const Ref& r) {
    const Memory& m = k_.memories[size_t(r.memory)];
    Affine at;
    for (size_t d = 0; d < r.index.size(); ++d) {
      form(r.index[d].affine, "a coordinate");
      at = at + m.strides[d] * r.index[d].affine;
    }
    if (!r.checked) form(at, "an address");
  }

  void bounds(const Bounds& b) {
    for (auto& c : b) form(c.affine, "a bound");
  }

  void terms(const std::vector<Id>& roots, const Body* body) {
    const Pool& p = *k_.pool;
    std::map<Id, Range> known;
    for (Id id : expr::schedule(p, roots)) {
      const Term& t = p[id];
      if (t.type == Type::bits) return say("a term of bits");
      if (t.type != Type::index) continue;
      Range r = term_range(p, t, [&](size_t n) { return known.count(t.args[n]) ? known.at(t.args[n]) : Range{}; });
      if (t.op == Op::literal && t.whole == INT64_MAX) r = {word32.hi, word32.hi};
      if (t.op == Op::coord) r = vars_[size_t(t.whole)];
      if (t.op == Op::var) r = word32; // the states of a fold: of terms judged here, or of 64-bit storage
      if (t.op == Op::arg) {
        const Range of = format_range(k_.memories[size_t(body->refs[size_t(t.whole)].memory)].format);
        r = of.known() && of.hi < stored.hi ? of : stored;
      }
      if (t.op == Op::to_index && p[t.args[0]].type == Type::real) r = stored;
      if (!fits_32(r)) return say(std::string("an index (") + row(t.op).name + ") may not fit 32 bits");
      known[id] = r;
    }
  }

  void body(const Body& b) {
    for (auto& r : b.refs) ref(r);
    for (auto& g : b.guards)
      for (auto& x : g) bounds(x);
    std::vector<Id> roots = b.values;
    if (b.when) roots.push_back(*b.when);
    terms(roots, &b);
  }

  void block(const Block& b) {
    for (auto& s : b)
      std::visit(Match{[&](const Apply& x) {
                         axes(x.axes), bounds(x.bounds), body(x.body);
                         for (auto& p : x.partial) bounds(p);
                         for (auto& r : x.dst) ref(r);
                       },
                       [&](const Fold& x) {
                         axes(x.kept), axes(x.folded), bounds(x.bounds), bounds(x.limits), body(x.body);
                         for (auto& p : x.partial) bounds(p);
                         for (auto& r : x.dst) ref(r);
                         if (!x.search) terms(x.combine, nullptr); // which is never evaluated
                       },
                       [&](const Contract& x) {
                         axes(x.m), axes(x.n), axes(x.k), ref(x.dst), ref(x.a), ref(x.b);
                         for (auto* e : {&x.m_end, &x.n_end, &x.k_end})
                           if (*e) form(**e, "a bound");
                       },
                       [&](const Let& x) { let(x); },
                       [&](const Loop& x) {
                         form(x.begin, "a loop's bound"), form(x.end, "a loop's bound");
                         const Range lo = range(x.begin, vars_), hi = range(x.end, vars_);
                         vars_[size_t(x.var)] = {lo.lo, std::max(lo.lo, hi.hi - 1)};
                         block(x.body);
                       },
                       [&](const If& x) {
                         for (auto& a : x.all) form(a, "a condition");
                         block(x.then);
                       },
                       [](const auto&) {}},
                 s.node);
  }

  void let(const Let& x) {
    Range r;
    if (x.kind == Let::load) {
      ref(x.ref);
      const Range of = format_range(k_.memories[size_t(x.ref.memory)].format);
      // A loaded integer is a coordinate or a time. An address made from it wraps around and is right wherever it is
      // inside its memory; only a bound could be misjudged, and then from 2^20 on.
      r = of.known() && of.hi < word32.hi ? of : Range{-(1 << 20), 1 << 20};
    } else {
      for (auto& o : x.operands) form(o, "an integer");
      r = range(x.operands[0], vars_);
      for (size_t n = 1; n < x.operands.size(); ++n) {
        const Range o = range(x.operands[n], vars_);
        r = x.kind == Let::min ? Range{std::min(r.lo, o.lo), std::min(r.hi, o.hi)}
                               : Range{std::max(r.lo, o.lo), std::max(r.hi, o.hi)};
      }
      if (x.kind == Let::floor_div && r.known()) r = {floor_div(r.lo, x.divisor), floor_div(r.hi, x.divisor)};
    }
    vars_[size_t(x.var)] = r;
  }

  const Kernel& k_;
  std::vector<Range> vars_;
  std::optional<std::string> why_;
};
} // namespace

std::optional<std::string> beyond_32_bits(const Kernel& k) { return RangeWalk(k).run(); }

} // namespace tang::kernel
