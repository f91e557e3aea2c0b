// Element types of tensor files: one table row each. Files are little endian and so is every target.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tang::formats {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// clang-format off
enum class Dtype : uint8_t {
  boolean, u8, i8, f8_e4m3, f8_e5m2, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64, count_
};

// clang-format on

struct DtypeRow {
  Dtype type;
  const char* name; // as safetensors spells it
  const char* npy;  // as npy spells it without the byte order; "": npy has no such type
  uint32_t bytes;
};

const DtypeRow& row(Dtype type);
std::optional<Dtype> dtype_of_name(std::string_view name);
std::optional<Dtype> dtype_of_npy(std::string_view code);
std::string list_dtypes();     // "BOOL U8 .."
std::string list_npy_dtypes(); // "b1 u1 .."

// `count` elements as T (float or double), each rounded once; `from` need not be aligned.
// A bool is 0 or 1 whatever its byte; e4m3 has no infinity.
template <class T> void convert(Dtype type, const uint8_t* from, size_t count, T* to);
extern template void convert(Dtype, const uint8_t*, size_t, float*);
extern template void convert(Dtype, const uint8_t*, size_t, double*);

} // namespace tang::formats
