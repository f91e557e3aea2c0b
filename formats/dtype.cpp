#include "tang/formats/dtype.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "tang/base/error.hpp"

namespace tang::formats {

namespace {
// clang-format off
constexpr DtypeRow rows[] = {
    {Dtype::boolean, "BOOL",    "b1", 1},
    {Dtype::u8,      "U8",      "u1", 1},
    {Dtype::i8,      "I8",      "i1", 1},
    {Dtype::f8_e4m3, "F8_E4M3", "",   1},
    {Dtype::f8_e5m2, "F8_E5M2", "",   1},
    {Dtype::u16,     "U16",     "u2", 2},
    {Dtype::i16,     "I16",     "i2", 2},
    {Dtype::f16,     "F16",     "f2", 2},
    {Dtype::bf16,    "BF16",    "",   2},
    {Dtype::u32,     "U32",     "u4", 4},
    {Dtype::i32,     "I32",     "i4", 4},
    {Dtype::f32,     "F32",     "f4", 4},
    {Dtype::u64,     "U64",     "u8", 8},
    {Dtype::i64,     "I64",     "i8", 8},
    {Dtype::f64,     "F64",     "f8", 8},
};
// clang-format on
static_assert(sizeof rows / sizeof *rows == size_t(Dtype::count_));

// Sign, exponent and mantissa of a format narrower than f32. Without infinities (e4m3) only all ones is NaN.
float widen(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_inf) {
  const int exponents = (1 << exponent_bits) - 1, mantissas = (1 << mantissa_bits) - 1;
  const int bias = exponents >> 1;
  const int e = int(bits >> mantissa_bits) & exponents, m = int(bits) & mantissas;
  const bool negative = (bits >> (exponent_bits + mantissa_bits)) & 1;
  float v;
  if (e == exponents && (has_inf || m == mantissas)) {
    v = m ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else {
    v = e ? std::ldexp(float(m + mantissas + 1), e - bias - mantissa_bits)
          : std::ldexp(float(m), 1 - bias - mantissa_bits);
  }
  return negative ? -v : v;
}

float widen_bf16(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float v;
  std::memcpy(&v, &wide, sizeof v);
  return v;
}

template <class Stored, class T, class F> void each(const uint8_t* from, size_t count, T* to, F value) {
  for (size_t i = 0; i < count; i++) {
    Stored s;
    std::memcpy(&s, from + i * sizeof s, sizeof s);
    to[i] = T(value(s));
  }
}
} // namespace

const DtypeRow& row(Dtype type) {
  check(type < Dtype::count_, "a dtype outside its table");
  return rows[size_t(type)];
}

std::optional<Dtype> dtype_of_name(std::string_view name) {
  for (auto& r : rows)
    if (name == r.name) return r.type;
  return std::nullopt;
}

std::optional<Dtype> dtype_of_npy(std::string_view code) {
  for (auto& r : rows)
    if (*r.npy && code == r.npy) return r.type;
  return std::nullopt;
}

std::string list_dtypes() {
  std::string out;
  for (auto& r : rows) out += (out.empty() ? "" : " ") + std::string(r.name);
  return out;
}

std::string list_npy_dtypes() {
  std::string out;
  for (auto& r : rows)
    if (*r.npy) out += (out.empty() ? "" : " ") + std::string(r.npy);
  return out;
}

template <class T> void convert(Dtype type, const uint8_t* from, size_t count, T* to) {
  auto same = [](auto v) { return v; };
  switch (type) {
  case Dtype::boolean: return each<uint8_t>(from, count, to, [](uint8_t v) { return v != 0; });
  case Dtype::u8: return each<uint8_t>(from, count, to, same);
  case Dtype::i8: return each<int8_t>(from, count, to, same);
  case Dtype::f8_e4m3: return each<uint8_t>(from, count, to, [](uint8_t v) { return widen(v, 4, 3, false); });
  case Dtype::f8_e5m2: return each<uint8_t>(from, count, to, [](uint8_t v) { return widen(v, 5, 2, true); });
  case Dtype::u16: return each<uint16_t>(from, count, to, same);
  case Dtype::i16: return each<int16_t>(from, count, to, same);
  case Dtype::f16: return each<uint16_t>(from, count, to, [](uint16_t v) { return widen(v, 5, 10, true); });
  case Dtype::bf16: return each<uint16_t>(from, count, to, widen_bf16);
  case Dtype::u32: return each<uint32_t>(from, count, to, same);
  case Dtype::i32: return each<int32_t>(from, count, to, same);
  case Dtype::f32: return each<float>(from, count, to, same);
  case Dtype::u64: return each<uint64_t>(from, count, to, same);
  case Dtype::i64: return each<int64_t>(from, count, to, same);
  case Dtype::f64: return each<double>(from, count, to, same);
  case Dtype::count_: break;
  }
  check(false, "a dtype outside its table");
}

template void convert(Dtype, const uint8_t*, size_t, float*);
template void convert(Dtype, const uint8_t*, size_t, double*);

} // namespace tang::formats
