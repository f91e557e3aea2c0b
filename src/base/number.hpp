// Numbers as text that reads back bit for bit, and checked 64-bit arithmetic.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tang {

// The shortest decimal text that strtod reads back to the same bits; "inf", "-inf", "nan".
std::string shortest(double v);

inline std::optional<int64_t> add_checked(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

inline std::optional<int64_t> mul_checked(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

inline int64_t add_saturated(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

inline int64_t mul_saturated(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : r;
}

// Rounds towards minus infinity; b > 0.
inline constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

inline constexpr int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

inline constexpr int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

} // namespace tang
