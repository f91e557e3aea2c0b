// Host values to and from the bytes of a storage format.
#include <cstring>

#include "tang/base/hash.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

using ir::Format;

namespace {
template <class T> void put(void* to, int64_t k, T v) {
  std::memcpy(static_cast<char*>(to) + k * int64_t(sizeof v), &v, sizeof v);
}

template <class T> T get(const void* from, int64_t k) {
  T v;
  std::memcpy(&v, static_cast<const char*>(from) + k * int64_t(sizeof v), sizeof v);
  return v;
}

// A value already rounded to the format, as its bits: sign, exponent, significand.
uint16_t pack(double v, const ir::FormatRow& r) {
  const uint64_t b = bits_of(v);
  const int sign = int(b >> 63);
  const int width = 1 + r.exponent + r.mantissa, bias = (1 << (r.exponent - 1)) - 1;
  const uint16_t top = uint16_t(sign << (width - 1));
  if (v != v) return uint16_t(top | (((1 << (r.exponent + r.mantissa)) - 1)));
  if (v == 0) return top;
  int e = int((b >> 52) & 0x7ff) - 1023;
  if (e == 1024) return uint16_t(top | (((1 << r.exponent) - 1) << r.mantissa));
  uint64_t m = (b & ((uint64_t(1) << 52) - 1)) | (uint64_t(1) << 52);
  const int least = 1 - bias;
  if (e < least) return uint16_t(top | (m >> (52 - r.mantissa + (least - e))));
  m &= (uint64_t(1) << 52) - 1;
  return uint16_t(top | ((e + bias) << r.mantissa) | (m >> (52 - r.mantissa)));
}

double unpack(uint16_t bits, const ir::FormatRow& r) {
  const int width = 1 + r.exponent + r.mantissa, bias = (1 << (r.exponent - 1)) - 1;
  const double sign = bits >> (width - 1) & 1 ? -1 : 1;
  const int e = bits >> r.mantissa & ((1 << r.exponent) - 1), m = bits & ((1 << r.mantissa) - 1);
  const bool no_inf = r.format == Format::e4m3;
  if (e == (1 << r.exponent) - 1 && !no_inf)
    return m ? double_of(0x7ff8000000000000u) : sign * double_of(0x7ff0000000000000u);
  if (no_inf && e == 15 && m == 7) return double_of(0x7ff8000000000000u);
  double v = e ? double(m | (1 << r.mantissa)) : double(m);
  for (int k = (e ? e : 1) - bias - r.mantissa; k != 0; k += k < 0 ? 1 : -1) v = k < 0 ? v / 2 : v * 2;
  return sign * v;
}
} // namespace

void write(void* to, Format f, const std::vector<double>& values) {
  const ir::FormatRow& r = ir::row(f);
  for (size_t k = 0; k < values.size(); ++k) {
    const double v = ir::rounded(values[k], f);
    switch (r.bits) {
    case 64: put(to, int64_t(k), v); break;
    case 32: put(to, int64_t(k), float(v)); break;
    case 16: put(to, int64_t(k), pack(v, r)); break;
    default: put(to, int64_t(k), uint8_t(pack(v, r)));
    }
  }
}

void write(void* to, Format f, const std::vector<int64_t>& values) {
  for (size_t k = 0; k < values.size(); ++k) switch (ir::row(f).bits) {
    case 64: put(to, int64_t(k), values[k]); break;
    case 32: put(to, int64_t(k), int32_t(values[k])); break;
    case 16: put(to, int64_t(k), int16_t(values[k])); break;
    default: put(to, int64_t(k), int8_t(values[k]));
    }
}

std::vector<double> read_reals(const void* from, Format f, int64_t n) {
  std::vector<double> out;
  for (int64_t k = 0; k < n; ++k) switch (ir::row(f).bits) {
    case 64: out.push_back(get<double>(from, k)); break;
    case 32: out.push_back(double(get<float>(from, k))); break;
    case 16: out.push_back(unpack(get<uint16_t>(from, k), ir::row(f))); break;
    default: out.push_back(unpack(get<uint8_t>(from, k), ir::row(f)));
    }
  return out;
}

std::vector<int64_t> read_integers(const void* from, Format f, int64_t n) {
  std::vector<int64_t> out;
  const bool is_signed = f != Format::u32 && f != Format::u16 && f != Format::u8 && f != Format::boolean;
  for (int64_t k = 0; k < n; ++k) switch (ir::row(f).bits) {
    case 64: out.push_back(get<int64_t>(from, k)); break;
    case 32: out.push_back(is_signed ? get<int32_t>(from, k) : int64_t(get<uint32_t>(from, k))); break;
    case 16: out.push_back(is_signed ? get<int16_t>(from, k) : int64_t(get<uint16_t>(from, k))); break;
    default: out.push_back(is_signed ? get<int8_t>(from, k) : int64_t(get<uint8_t>(from, k)));
    }
  return out;
}

} // namespace tang::run
