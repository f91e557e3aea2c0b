#include "tang/kernel/facts.hpp"

#include <algorithm>
#include <numeric>

#include "tang/base/number.hpp"

namespace tang::kernel {

namespace {
using Bound = std::optional<int64_t>;

// a * x + b * y with every step checked.
std::optional<Affine> mixed(int64_t a, const Affine& x, int64_t b, const Affine& y) {
  Affine out;
  auto sum = [](int64_t p, int64_t q, int64_t r, int64_t s) -> Bound {
    const Bound l = mul_checked(p, q), m = mul_checked(r, s);
    return l && m ? add_checked(*l, *m) : std::nullopt;
  };
  const Bound c = sum(a, x.c, b, y.c);
  if (!c) return {};
  out.c = *c;
  size_t i = 0, j = 0;
  while (i < x.terms.size() || j < y.terms.size()) {
    const Var v = j == y.terms.size() || (i < x.terms.size() && x.terms[i].first < y.terms[j].first)
                      ? x.terms[i].first
                      : y.terms[j].first;
    const int64_t p = i < x.terms.size() && x.terms[i].first == v ? x.terms[i++].second : 0;
    const int64_t q = j < y.terms.size() && y.terms[j].first == v ? y.terms[j++].second : 0;
    const Bound k = sum(a, p, b, q);
    if (!k) return {};
    if (*k) out.terms.emplace_back(v, *k);
  }
  return out;
}

// Divides by the common factor; over the integers the constant rounds down.
void normalise(Affine& e) {
  int64_t g = 0;
  for (auto& [v, k] : e.terms) g = std::gcd(g, k);
  if (g < 2) return;
  for (auto& t : e.terms) t.second /= g;
  e.c = floor_div(e.c, g);
}

Residue meet(const Residue& a, const Residue& b) { // of a value that is either
  const int64_t by = std::gcd(std::gcd(a.by, b.by), a.rest - b.rest);
  return {by, by ? floor_mod(a.rest, by) : a.rest};
}
} // namespace

void Facts::define(Var v, Bound low, Bound high, Residue residue) {
  order_[v] = boxes_.size();
  boxes_.push_back({v, low, high, residue});
}

void Facts::assume(const Affine& e) {
  assumed_.push_back(e);
  normalise(assumed_.back());
}

void Facts::one_of(Var v, const std::vector<Affine>& values) { cases_[v] = values; }

Bound Facts::low(const Affine& e) const {
  int64_t sum = e.c;
  for (auto& [v, k] : e.terms) {
    auto it = order_.find(v);
    const Bound x = it == order_.end() ? Bound{} : k > 0 ? boxes_[it->second].low : boxes_[it->second].high;
    const Bound term = x ? mul_checked(k, *x) : Bound{};
    const Bound next = term ? add_checked(sum, *term) : Bound{};
    if (!next) return {};
    sum = *next;
  }
  return sum;
}

Bound Facts::high(const Affine& e) const {
  const Bound l = low(-1 * e);
  return l ? Bound(-*l) : Bound{};
}

Residue Facts::residue(const Affine& e) const {
  int64_t by = 0, rest = e.c;
  for (auto& [v, k] : e.terms) {
    auto it = order_.find(v);
    const Residue r = it == order_.end() ? Residue{} : boxes_[it->second].residue;
    by = std::gcd(by, k * r.by);
    rest += k * r.rest;
  }
  return {by, by ? floor_mod(rest, by) : rest};
}

bool Facts::multiple(const Affine& e, int64_t of) const {
  const Residue r = residue(e);
  return of == 1 || (r.by % of == 0 && r.rest % of == 0);
}

// Eliminates variables, the latest defined first: by the end of its box, by an assumption that bounds it, or
// by cases.
bool Facts::prove(Affine e, int depth, int& budget) const {
  if (--budget < 0) return false;
  normalise(e);
  if (const Bound l = low(e); l && *l >= 0) return true;
  if (e.terms.empty() || depth == 0) return false;
  auto place = [&](Var v) {
    auto it = order_.find(v);
    return it == order_.end() ? size_t(0) : it->second;
  };
  Var v = e.terms[0].first;
  for (auto& [x, k] : e.terms)
    if (place(x) > place(v)) v = x;
  const int64_t k = coefficient(e, v);
  for (auto& c : assumed_) {
    const int64_t kc = coefficient(c, v);
    if (kc == 0 || (kc > 0) != (k > 0)) continue;
    const int64_t g = std::gcd(k, kc);
    // |kc| e = (|kc| e - |k| c) + |k| c
    const auto rest = mixed((kc < 0 ? -kc : kc) / g, e, -(k < 0 ? -k : k) / g, c);
    if (rest && prove(*rest, depth - 1, budget)) return true;
  }
  if (auto it = cases_.find(v); it != cases_.end()) {
    bool all = true;
    for (auto& value : it->second) {
      Affine gone = e;
      gone.terms.erase(
          std::find_if(gone.terms.begin(), gone.terms.end(), [&](auto& t) { return t.first == v; }));
      const auto in = mixed(1, gone, k, value);
      all = all && in && prove(*in, depth - 1, budget);
    }
    if (all) return true;
  }
  auto it = order_.find(v);
  const Bound end = it == order_.end() ? Bound{} : k > 0 ? boxes_[it->second].low : boxes_[it->second].high;
  if (!end) return false;
  const auto rest = mixed(1, e, -k, variable(v) - constant(*end));
  return rest && prove(*rest, depth - 1, budget);
}

bool Facts::proves(const Affine& e) const {
  for (int depth : {1, 2, 3, 4, 6, 9}) { // short proofs first: a wrong turn deep down would use up the budget
    int budget = 2000;
    if (prove(e, depth, budget)) return true;
  }
  return false;
}

bool Facts::impossible() const {
  for (auto& c : assumed_) {
    int budget = 300;
    if (prove(constant(-1) - c, 6, budget)) return true;
  }
  return false;
}

Affine renamed(const Affine& a, const std::set<Var>& shared, int offset) {
  Affine out = constant(a.c);
  for (auto& [v, k] : a.terms) out = out + variable(shared.count(v) ? v : v + offset, k);
  return out;
}

Facts Facts::beside(const Facts& other, const std::set<Var>& shared, int offset) const {
  Facts out = *this;
  for (auto& b : other.boxes_)
    if (!shared.count(b.var))
      out.define(b.var + offset, b.low, b.high, b.residue);
    else if (!out.defined(b.var))
      out.define(b.var, b.low, b.high, b.residue);
  for (auto& e : other.assumed_) out.assume(renamed(e, shared, offset));
  for (auto& [v, values] : other.cases_) {
    if (shared.count(v)) continue;
    std::vector<Affine> to;
    for (auto& x : values) to.push_back(renamed(x, shared, offset));
    out.one_of(v + offset, to);
  }
  return out;
}

std::set<Var> Facts::determined_by(const std::set<Var>& fixed) const {
  std::set<Var> out = fixed;
  for (auto& b : boxes_) {
    auto it = cases_.find(b.var);
    if (it == cases_.end()) continue;
    bool all = true;
    for (auto& x : it->second)
      for (auto& t : x.terms) all &= out.count(t.first) != 0;
    if (all) out.insert(b.var);
  }
  return out;
}

void define_loop(Facts& f, Var v, const Affine& begin, const Affine& end, int64_t step) {
  const bool whole = f.multiple(end - begin, step); // the last block ends at `end`
  const int64_t back = whole ? step : 1;
  const Residue from = f.residue(begin);
  const int64_t by = std::gcd(from.by, step);
  const Bound low = f.low(begin);
  Bound high = f.high(end);
  if (high) *high -= back;
  if (begin.terms.empty() && end.terms.empty())
    high = begin.c + std::max<int64_t>(0, floor_div(end.c - 1 - begin.c, step)) * step;
  f.define(v, low, high, {by, by ? floor_mod(from.rest, by) : from.rest});
  f.assume(variable(v) - begin);
  f.assume(end - variable(v) - constant(back));
}

void define_let(Facts& f, const Let& x, const Kernel& k) {
  if (x.kind == Let::load) {
    const int bits = x.ref.memory < 0 ? 64 : row(k.memories[size_t(x.ref.memory)].format).bits;
    const bool no_sign = x.ref.memory >= 0 && type_of(k.memories[size_t(x.ref.memory)].format) == Type::bits;
    if (bits >= 64) return f.define(x.var, {}, {});
    const int64_t top = int64_t(1) << (no_sign ? bits : bits - 1);
    return f.define(x.var, no_sign ? 0 : -top, top - 1);
  }
  if (x.operands.empty()) return f.define(x.var, {}, {});
  Bound low = f.low(x.operands[0]), high = f.high(x.operands[0]);
  Residue residue = f.residue(x.operands[0]);
  auto least = [](Bound a, Bound b) { return a && b ? Bound(std::min(*a, *b)) : Bound{}; };
  auto most = [](Bound a, Bound b) { return a && b ? Bound(std::max(*a, *b)) : Bound{}; };
  for (size_t o = 1; o < x.operands.size(); ++o) {
    const Bound l = f.low(x.operands[o]), h = f.high(x.operands[o]);
    residue = meet(residue, f.residue(x.operands[o]));
    if (x.kind == Let::min) {
      low = least(low, l);
      high = high && h ? least(high, h) : high ? high : h;
    } else if (x.kind == Let::max) {
      low = low && l ? most(low, l) : low ? low : l;
      high = most(high, h);
    }
  }
  const Affine self = variable(x.var);
  if (x.kind == Let::floor_div) {
    f.define(x.var, low ? Bound(floor_div(*low, x.divisor)) : low,
             high ? Bound(floor_div(*high, x.divisor)) : high);
    f.assume(x.operands[0] - x.divisor * self);
    f.assume(x.divisor * self - x.operands[0] + constant(x.divisor - 1));
    return;
  }
  f.define(x.var, low, high, residue);
  f.one_of(x.var, x.kind == Let::affine ? std::vector<Affine>{x.operands[0]} : x.operands);
  for (auto& o : x.operands) {
    if (x.kind != Let::max) f.assume(o - self);
    if (x.kind != Let::min) f.assume(self - o);
  }
}

} // namespace tang::kernel
