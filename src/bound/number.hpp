// Exact numbers: rationals of 64-bit parts that refuse to overflow, and naturals of any size for comparing
// powers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tang::bound {

struct Overflow {
}; // a rational left 64 bits, or a result does not fit: public functions turn it into a Refusal

class Rational {
public:
  Rational(int64_t n = 0) : n_(n) {}

  Rational(int64_t n, int64_t d) { *this = reduced(n, d); }

  int64_t num() const { return n_; }

  int64_t den() const { return d_; }

  int sign() const { return (n_ > 0) - (n_ < 0); }

  double real() const { return double(n_) / double(d_); }

  std::string text() const {
    return d_ == 1 ? std::to_string(n_) : std::to_string(n_) + "/" + std::to_string(d_);
  }

  int64_t floor() const;
  int64_t ceil() const;

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b); // b != 0

  friend Rational operator-(const Rational& a) { return reduced(-wide(a.n_), a.d_); }

  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }

  friend bool operator==(const Rational& a, const Rational& b) { return a.n_ == b.n_ && a.d_ == b.d_; }

  friend bool operator!=(const Rational& a, const Rational& b) { return !(a == b); }

  friend bool operator<(const Rational& a, const Rational& b) {
    return wide(a.n_) * b.d_ < wide(b.n_) * a.d_;
  }

  friend bool operator<=(const Rational& a, const Rational& b) { return !(b < a); }

private:
  __extension__ using wide = __int128;
  static Rational reduced(wide n, wide d);
  int64_t n_ = 0, d_ = 1; // lowest terms, d_ > 0
};

// A natural number as 32-bit digits, least first, no leading zero.
class Natural {
public:
  Natural(uint64_t v = 0);
  friend Natural operator*(const Natural& a, const Natural& b);
  static int compare(const Natural& a, const Natural& b);
  long double log2() const; // of a positive number

private:
  std::vector<uint32_t> digits_;
};

Natural power(uint64_t base, uint64_t exponent);

// The real number (num / den)^(1 / root), kept as integers.
struct Root {
  Natural num = 1, den = 1;
  int64_t root = 1;
  void multiply(uint64_t base, int64_t exponent); // the radicand, by base^exponent
  double real() const;
  int64_t floor() const; // exact
};

} // namespace tang::bound
