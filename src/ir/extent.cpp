#include "tang/ir/extent.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"

namespace tang::ir {

namespace {
int sign(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

int64_t sum(int64_t a, int64_t b) {
  auto r = add_checked(a, b);
  if (!r) throw Error({}, "an extent does not fit in 64 bits", {}, "use smaller dimensions");
  return *r;
}

int64_t times(int64_t a, int64_t b) {
  auto r = mul_checked(a, b);
  if (!r) throw Error({}, "an extent does not fit in 64 bits", {}, "use smaller dimensions");
  return *r;
}
} // namespace

int Extent::compare(const Atom& a, const Atom& b) {
  if (a.kind != b.kind) return sign(int64_t(a.kind), int64_t(b.kind));
  if (int c = a.name.compare(b.name)) return c;
  if (int c = sign(a.divisor, b.divisor)) return c;
  for (size_t k = 0; k < a.operands.size(); ++k)
    if (int c = compare(a.operands[k], b.operands[k])) return c;
  return 0;
}

int Extent::compare(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return sign(int64_t(b.size()), int64_t(a.size())); // higher degree first
  for (size_t k = 0; k < a.size(); ++k)
    if (int c = compare(*a[k], *b[k])) return c;
  return 0;
}

int Extent::compare(const Extent& a, const Extent& b) {
  if (!a.terms_ && !b.terms_) return sign(a.constant_, b.constant_);
  static const std::vector<Term> none;
  const auto &x = a.terms_ ? *a.terms_ : none, &y = b.terms_ ? *b.terms_ : none;
  if (x.size() != y.size()) return sign(int64_t(x.size()), int64_t(y.size()));
  for (size_t k = 0; k < x.size(); ++k) {
    if (int c = compare(x[k].product, y[k].product)) return c;
    if (int c = sign(x[k].coefficient, y[k].coefficient)) return c;
  }
  return sign(a.constant_, b.constant_);
}

Extent Extent::normal(std::vector<Term> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare(a.product, b.product) < 0; });
  std::vector<Term> kept;
  for (auto& t : terms) {
    if (!kept.empty() && compare(kept.back().product, t.product) == 0)
      kept.back().coefficient = sum(kept.back().coefficient, t.coefficient);
    else
      kept.push_back(t);
  }
  kept.erase(std::remove_if(kept.begin(), kept.end(), [](const Term& t) { return t.coefficient == 0; }),
             kept.end());
  Extent out(constant);
  if (!kept.empty()) out.terms_ = std::make_shared<const std::vector<Term>>(std::move(kept));
  return out;
}

Extent Extent::of(Atom atom) { return normal({{{std::make_shared<const Atom>(std::move(atom))}, 1}}, 0); }

Extent Extent::symbol(const std::string& name) { return of({Kind::symbol, name, 1, {}}); }

int64_t Extent::value() const {
  check(is_constant(), "the extent " + text() + " is not bound");
  return constant_;
}

Extent operator+(const Extent& a, const Extent& b) {
  if (!a.terms_ && !b.terms_) return Extent(sum(a.constant_, b.constant_));
  std::vector<Extent::Term> terms;
  for (auto* e : {&a, &b})
    if (e->terms_) terms.insert(terms.end(), e->terms_->begin(), e->terms_->end());
  return Extent::normal(std::move(terms), sum(a.constant_, b.constant_));
}

Extent operator*(const Extent& a, const Extent& b) {
  if (!a.terms_ && !b.terms_) return Extent(times(a.constant_, b.constant_));
  auto full = [](const Extent& e) {
    std::vector<Extent::Term> t;
    if (e.terms_) t = *e.terms_;
    if (e.constant_) t.push_back({{}, e.constant_});
    return t;
  };
  std::vector<Extent::Term> terms;
  int64_t constant = 0;
  for (auto& x : full(a))
    for (auto& y : full(b)) {
      Extent::Monomial m = x.product;
      m.insert(m.end(), y.product.begin(), y.product.end());
      std::sort(m.begin(), m.end(), [](auto& p, auto& q) { return Extent::compare(*p, *q) < 0; });
      const int64_t c = times(x.coefficient, y.coefficient);
      if (m.empty())
        constant = sum(constant, c);
      else
        terms.push_back({std::move(m), c});
    }
  return Extent::normal(std::move(terms), constant);
}

Extent floor_div(const Extent& a, int64_t b) {
  check(b > 0, "division of an extent by a positive constant");
  if (b == 1) return a;
  if (a.is_constant()) return Extent(tang::floor_div(a.constant_, b));
  const bool exact = a.constant_ % b == 0 && std::all_of(a.terms_->begin(), a.terms_->end(),
                                                         [&](auto& t) { return t.coefficient % b == 0; });
  if (!exact) return Extent::of({Extent::Kind::floor_div, "", b, {a}});
  std::vector<Extent::Term> terms = *a.terms_;
  for (auto& t : terms) t.coefficient /= b;
  return Extent::normal(std::move(terms), a.constant_ / b);
}

Extent ceil_div(const Extent& a, int64_t b) {
  if (a.is_constant()) return Extent(tang::ceil_div(a.constant_, b));
  return floor_div(a + Extent(b - 1), b);
}

Extent min(const Extent& a, const Extent& b) {
  const Extent gap = a - b;
  if (gap.is_constant()) return gap.constant_ <= 0 ? a : b;
  return a < b ? Extent::of({Extent::Kind::min, "", 1, {a, b}})
               : Extent::of({Extent::Kind::min, "", 1, {b, a}});
}

Extent max(const Extent& a, const Extent& b) {
  const Extent gap = a - b;
  if (gap.is_constant()) return gap.constant_ >= 0 ? a : b;
  return a < b ? Extent::of({Extent::Kind::max, "", 1, {a, b}})
               : Extent::of({Extent::Kind::max, "", 1, {b, a}});
}

Extent Extent::bind(const Bindings& values) const {
  if (!terms_) return *this;
  Extent out(constant_);
  for (auto& t : *terms_) {
    Extent product(t.coefficient);
    for (auto& a : t.product) {
      Extent factor;
      switch (a->kind) {
      case Kind::symbol: {
        auto it = values.find(a->name);
        factor = it == values.end() ? symbol(a->name) : Extent(it->second);
        break;
      }
      case Kind::floor_div: factor = floor_div(a->operands[0].bind(values), a->divisor); break;
      case Kind::ceil_div: factor = ceil_div(a->operands[0].bind(values), a->divisor); break;
      case Kind::min: factor = min(a->operands[0].bind(values), a->operands[1].bind(values)); break;
      case Kind::max: factor = max(a->operands[0].bind(values), a->operands[1].bind(values)); break;
      }
      product = product * factor;
    }
    out = out + product;
  }
  return out;
}

std::pair<int64_t, int64_t> Extent::range(const Symbols& symbols) const {
  int64_t lo = constant_, hi = constant_;
  if (!terms_) return {lo, hi};
  auto of = [&](const Atom& a) -> std::pair<int64_t, int64_t> {
    if (a.kind == Kind::symbol) {
      auto it = symbols.find(a.name);
      return it == symbols.end() ? std::pair<int64_t, int64_t>(0, INT64_MAX)
                                 : std::pair(it->second.lower, it->second.upper);
    }
    auto x = a.operands[0].range(symbols);
    if (a.kind == Kind::floor_div)
      return {tang::floor_div(x.first, a.divisor), tang::floor_div(x.second, a.divisor)};
    if (a.kind == Kind::ceil_div)
      return {tang::ceil_div(x.first, a.divisor), tang::ceil_div(x.second, a.divisor)};
    auto y = a.operands[1].range(symbols);
    if (a.kind == Kind::min) return {std::min(x.first, y.first), std::min(x.second, y.second)};
    return {std::max(x.first, y.first), std::max(x.second, y.second)};
  };
  for (auto& t : *terms_) {
    int64_t l = t.coefficient, h = t.coefficient;
    for (auto& a : t.product) {
      auto [x, y] = of(*a);
      const int64_t c[] = {mul_saturated(l, x), mul_saturated(l, y), mul_saturated(h, x),
                           mul_saturated(h, y)};
      l = *std::min_element(c, c + 4);
      h = *std::max_element(c, c + 4);
    }
    lo = add_saturated(lo, l);
    hi = add_saturated(hi, h);
  }
  return {lo, hi};
}

void Extent::symbols(std::map<std::string, bool>& out) const {
  if (!terms_) return;
  for (auto& t : *terms_)
    for (auto& a : t.product) {
      if (a->kind == Kind::symbol) out[a->name] = true;
      for (auto& o : a->operands) o.symbols(out);
    }
}

std::string Extent::text() const {
  return text([](const std::string& name) { return name; });
}

std::string Extent::text(const std::function<std::string(const std::string&)>& spelling) const {
  if (!terms_) return std::to_string(constant_);
  std::string out;
  for (auto& t : *terms_) {
    std::string product;
    for (auto& a : t.product) {
      if (!product.empty()) product += "*";
      auto list = [&] { return a->operands[0].text(spelling) + ", " + a->operands[1].text(spelling); };
      if (a->kind == Kind::symbol) product += spelling(a->name);
      if (a->kind == Kind::floor_div)
        product += "floordiv(" + a->operands[0].text(spelling) + ", " + std::to_string(a->divisor) + ")";
      if (a->kind == Kind::ceil_div)
        product += "ceildiv(" + a->operands[0].text(spelling) + ", " + std::to_string(a->divisor) + ")";
      if (a->kind == Kind::min) product += "min(" + list() + ")";
      if (a->kind == Kind::max) product += "max(" + list() + ")";
    }
    const int64_t c = t.coefficient;
    if (!out.empty())
      out += c < 0 ? " - " : " + ";
    else if (c < 0)
      out += "-";
    const std::string factor = c == INT64_MIN ? "9223372036854775808" : std::to_string(c < 0 ? -c : c);
    out += (factor == "1" ? "" : factor + "*") + product;
  }
  if (constant_)
    out += (constant_ < 0 ? " - " : " + ") + std::to_string(constant_ < 0 ? -constant_ : constant_);
  return out;
}

uint64_t Extent::hash() const { return terms_ ? hash_of(text()) : mix(uint64_t(constant_)); }

} // namespace tang::ir
