#include "tang/bound/number.hpp"

#include <cmath>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"

namespace tang::bound {

Rational Rational::reduced(wide n, wide d) {
  check(d != 0, "a rational with denominator 0");
  if (d < 0) n = -n, d = -d;
  if (d != 1) {
    wide a = n < 0 ? -n : n, b = d;
    while (b) {
      const wide r = (a >> 64) == 0 && (b >> 64) == 0 ? wide(uint64_t(a) % uint64_t(b)) : a % b;
      a = b, b = r;
    }
    n /= a, d /= a;
  }
  if (n > INT64_MAX || n < -wide(INT64_MAX) || d > INT64_MAX) throw Overflow{};
  Rational out;
  out.n_ = int64_t(n), out.d_ = int64_t(d);
  return out;
}

Rational operator+(const Rational& a, const Rational& b) {
  using wide = Rational::wide;
  if (!a.n_) return b;
  if (!b.n_) return a;
  if (a.d_ == b.d_) return Rational::reduced(wide(a.n_) + b.n_, a.d_);
  return Rational::reduced(wide(a.n_) * b.d_ + wide(b.n_) * a.d_, wide(a.d_) * b.d_);
}

Rational operator*(const Rational& a, const Rational& b) {
  if (!a.n_ || !b.n_) return 0;
  return Rational::reduced(Rational::wide(a.n_) * b.n_, Rational::wide(a.d_) * b.d_);
}

Rational operator/(const Rational& a, const Rational& b) {
  return Rational::reduced(Rational::wide(a.n_) * b.d_, Rational::wide(a.d_) * b.n_);
}

int64_t Rational::floor() const { return floor_div(n_, d_); }

int64_t Rational::ceil() const { return ceil_div(n_, d_); }

Natural::Natural(uint64_t v) {
  for (; v; v >>= 32) digits_.push_back(uint32_t(v));
}

Natural operator*(const Natural& a, const Natural& b) {
  Natural out;
  out.digits_.assign(a.digits_.size() + b.digits_.size(), 0);
  for (size_t i = 0; i < a.digits_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.digits_.size() || carry; ++j) {
      uint64_t v = out.digits_[i + j] + carry;
      if (j < b.digits_.size()) v += uint64_t(a.digits_[i]) * b.digits_[j];
      out.digits_[i + j] = uint32_t(v);
      carry = v >> 32;
    }
  }
  while (!out.digits_.empty() && !out.digits_.back()) out.digits_.pop_back();
  return out;
}

int Natural::compare(const Natural& a, const Natural& b) {
  if (a.digits_.size() != b.digits_.size()) return a.digits_.size() < b.digits_.size() ? -1 : 1;
  for (size_t i = a.digits_.size(); i--;)
    if (a.digits_[i] != b.digits_[i]) return a.digits_[i] < b.digits_[i] ? -1 : 1;
  return 0;
}

long double Natural::log2() const {
  check(!digits_.empty(), "the logarithm of 0");
  long double top = 0;
  const size_t n = digits_.size(), from = n > 4 ? n - 4 : 0;
  for (size_t i = n; i-- > from;) top = top * 4294967296.0L + digits_[i];
  return std::log2(top) + 32.0L * (long double)(from);
}

Natural power(uint64_t base, uint64_t exponent) {
  Natural out = 1, square = base;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) out = out * square;
    if (exponent > 1) square = square * square;
  }
  return out;
}

void Root::multiply(uint64_t base, int64_t exponent) {
  Natural& side = exponent < 0 ? den : num;
  side = side * power(base, uint64_t(exponent < 0 ? -exponent : exponent));
}

double Root::real() const { return double(std::exp2((num.log2() - den.log2()) / (long double)(root))); }

int64_t Root::floor() const {
  const double near = real();
  if (!(near < 4e18)) throw Overflow{};
  auto at_most = [&](int64_t k) { // k <= this number
    Natural left = power(uint64_t(k), uint64_t(root)) * den;
    return Natural::compare(left, num) <= 0;
  };
  int64_t low = std::max<int64_t>(0, int64_t(near * (1 - 1e-11)) - 2), high = int64_t(near * (1 + 1e-11)) + 2;
  check(at_most(low) && !at_most(high), "an estimate of a root");
  while (high - low > 1) {
    const int64_t mid = low + (high - low) / 2;
    (at_most(mid) ? low : high) = mid;
  }
  return low;
}

} // namespace tang::bound
