// Rounding to a format, against the definition: the nearest number of the format, of two the one with an even last digit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tang/expr/format.hpp"

using namespace tang;
using expr::Format;

namespace {
double nearest(double v, Format f) {
  const auto& r = expr::row(f);
  const int bias = (1 << (r.exponent - 1)) - 1;
  const double largest = f == Format::e4m3 ? 448 : std::ldexp(2 - std::ldexp(1.0, -r.mantissa), bias);
  const int power = std::max(std::ilogb(v), 1 - bias);
  const double quantum = std::ldexp(1.0, power - r.mantissa), steps = std::fabs(v) / quantum;
  double whole = std::floor(steps);
  if (steps - whole > 0.5 || (steps - whole == 0.5 && std::fmod(whole, 2) == 1)) ++whole;
  const double out = whole * quantum;
  if (out > largest) return f == Format::e4m3 ? std::numeric_limits<double>::quiet_NaN() : std::copysign(INFINITY, v);
  return std::copysign(out, v);
}
} // namespace

TEST(rounding, every_format_takes_the_nearest_even_number) {
  std::mt19937_64 rng(5);
  for (Format f : {Format::f16, Format::bf16, Format::tf32, Format::e4m3, Format::e5m2}) {
    const int bias = (1 << (expr::row(f).exponent - 1)) - 1;
    for (int n = 0; n < 200000; ++n) {
      const int power = int(rng() % uint64_t(2 * bias + 8)) - bias - 4;
      // Half of them with few digits, so that many lie halfway between two numbers.
      const double digits = n % 2 ? 1 + double(rng() >> 11) * 0x1p-53 : 1 + double(rng() % 4096) / 4096;
      const double v = std::ldexp(n % 3 ? digits : -digits, power), want = nearest(v, f), got = expr::rounded(v, f);
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << expr::row(f).name << " of " << v << ": " << got << ", not " << want;
    }
    for (double v : {0.0, -0.0}) EXPECT_EQ(std::signbit(expr::rounded(v, f)), std::signbit(v));
    EXPECT_TRUE(std::isnan(expr::rounded(std::nan(""), f)));
  }
}
