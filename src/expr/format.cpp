#include "tang/expr/format.hpp"

#include <cmath>
#include <limits>

#include "tang/base/hash.hpp"

namespace tang::expr {

namespace {
constexpr FormatRow formats[] = {
    {Format::f64, "f64", Type::real, 64, 52, 11},
    {Format::f32, "f32", Type::real, 32, 23, 8},
    {Format::f16, "f16", Type::real, 16, 10, 5},
    {Format::bf16, "bf16", Type::real, 16, 7, 8},
    {Format::tf32, "tf32", Type::real, 32, 10, 8},
    {Format::e4m3, "e4m3", Type::real, 8, 3, 4},
    {Format::e5m2, "e5m2", Type::real, 8, 2, 5},
    {Format::i64, "i64", Type::index, 64},
    {Format::i32, "i32", Type::index, 32},
    {Format::i16, "i16", Type::index, 16},
    {Format::i8, "i8", Type::index, 8},
    {Format::u32, "u32", Type::bits, 32},
    {Format::u16, "u16", Type::bits, 16},
    {Format::u8, "u8", Type::bits, 8},
    {Format::boolean, "bool", Type::boolean, 8},
};
static_assert(sizeof formats / sizeof *formats == size_t(Format::count_));
} // namespace

const FormatRow& row(Format f) { return formats[size_t(f)]; }

Format format_named(const std::string& name) {
  for (auto& r : formats)
    if (name == r.name) return r.format;
  return Format::count_;
}

Format default_format(Type t) {
  static constexpr Format of[] = {Format::f32, Format::i32, Format::u32, Format::boolean};
  return of[size_t(t)];
}

double rounded(double v, Format f) {
  if (f == Format::f32) return double(float(v));
  const FormatRow& r = formats[size_t(f)];
  if (f == Format::f64 || r.type != Type::real) return v;
  const int bias = (1 << (r.exponent - 1)) - 1, least = 1 - bias;
  // Well inside the range a carry out of the digits that stay is the next power of two, in the same bits.
  const uint64_t u = bits_of(v);
  if (const int power = int(u >> 52 & 2047) - 1023; power >= least && power < bias) {
    const int beyond = 52 - r.mantissa;
    return double_of((u + (u >> beyond & 1) + (uint64_t(1) << (beyond - 1)) - 1) >> beyond << beyond);
  }
  if (v == 0 || !std::isfinite(v)) return v;
  // e4m3 has no infinity: its largest exponent still holds numbers, up to 448; beyond is NaN.
  const double largest = f == Format::e4m3 ? 448 : std::ldexp(2 - std::ldexp(1.0, -r.mantissa), bias);
  int e;
  std::frexp(v, &e);
  const int quantum = (e - 1 < least ? least : e - 1) - r.mantissa;
  const double out =
      std::ldexp(std::nearbyint(std::ldexp(v, -quantum)), quantum); // nearest even: the default mode
  if (std::fabs(out) <= largest) return out;
  if (f == Format::e4m3) return std::numeric_limits<double>::quiet_NaN();
  return std::copysign(std::numeric_limits<double>::infinity(), v);
}

} // namespace tang::expr
