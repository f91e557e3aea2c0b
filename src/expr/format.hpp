// Storage formats: their names, widths and rounding.
#pragma once
#include <cstdint>
#include <string>

#include "tang/expr/op.hpp"

namespace tang::expr {

enum class Format : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  tf32,
  e4m3,
  e5m2,
  i64,
  i32,
  i16,
  i8,
  u32,
  u16,
  u8,
  boolean,
  count_
};

struct FormatRow {
  Format format;
  const char* name;
  Type type;
  int bits;         // of storage
  int mantissa = 0; // explicit significand bits of a real format
  int exponent = 0; // exponent bits
};

const FormatRow& row(Format f);
Format format_named(const std::string& name); // Format::count_ when there is none

inline Type type_of(Format f) { return row(f).type; }

Format default_format(Type t); // f32, i32 (index), u32 (bits), boolean

// The nearest value of the format, ties to even, with its subnormals and overflow (to inf; e4m3 to NaN).
double rounded(double v, Format f);

} // namespace tang::expr
