// The head of every CUDA unit: integers, elementary functions, narrow formats. No header is included.
#include "tang/emit/c_kernel.hpp"
#include "tang/emit/cuda.hpp"

namespace tang::emit {

namespace {
const char* const cuda_head = R"(typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long long uint64_t;
#undef INT64_MAX
#undef INT64_MIN
#undef INT32_MAX
#undef INFINITY
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define INT32_MAX 2147483647
#define INFINITY __int_as_float(0x7f800000)
#define TANG static __device__ __forceinline__
TANG float tang_inf() { return __int_as_float(0x7f800000); }
TANG float tang_nan() { return __int_as_float(0x7fc00000); }
#define __builtin_inff() tang_inf()
#define __builtin_inf() ((double)tang_inf())
#define __builtin_nanf(s) tang_nan()
#define __builtin_nan(s) ((double)tang_nan())
TANG int64_t tang_lesser(int64_t a, int64_t b) { return a < b ? a : b; }
TANG int64_t tang_greater(int64_t a, int64_t b) { return a > b ? a : b; }
TANG int64_t tang_floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }
TANG int64_t tang_div(int64_t a, int64_t b) { return b > 0 ? tang_floor_div(a, b) : 0; }
TANG int64_t tang_mod(int64_t a, int64_t b) { return b > 0 ? a - tang_floor_div(a, b) * b : 0; }
TANG int64_t tang_shl(int64_t a, int64_t n) { return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a << n); }
TANG int64_t tang_shr(int64_t a, int64_t n) { return n < 0 || n > 63 ? (a < 0 ? -1 : 0) : a >> n; }
TANG int64_t tang_shru(int64_t a, int64_t n) { return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a >> n); }
TANG int64_t tang_trunc(double r) {
  return r != r ? 0 : r >= 0x1p63 ? INT64_MAX : r <= -0x1p63 ? INT64_MIN : (int64_t)r;
}
TANG uint32_t tang_u1(float x) { return __float_as_uint(x); }
TANG float tang_f1(uint32_t u) { return __uint_as_float(u); }
TANG float tang_max1(float a, float b) { return b != b ? b : a < b ? b : a; }
TANG float tang_min1(float a, float b) { return b != b ? b : b < a ? b : a; }
TANG float tang_ratio1(float a, float b) { return b == 0 ? 0 : a / b; }
TANG float tang_sqrt1(float x) { return __fsqrt_rn(x); }
TANG float tang_fma1(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TANG float tang_floor1(float x) { return floorf(x); }
TANG float tang_exp21(float x) { return exp2f(x); }
TANG float tang_log21(float x) { return log2f(x); }
TANG float tang_sin1(float x) { return sinf(x); }
TANG float tang_atan21(float y, float x) { return atan2f(y, x); }
TANG double tang_dmax1(double a, double b) { return b != b ? b : a < b ? b : a; }
TANG double tang_dmin1(double a, double b) { return b != b ? b : b < a ? b : a; }
TANG double tang_dratio1(double a, double b) { return b == 0 ? 0 : a / b; }
TANG double tang_dsqrt1(double x) { return __dsqrt_rn(x); }
TANG double tang_dfma1(double a, double b, double c) { return __fma_rn(a, b, c); }
TANG double tang_dfloor1(double x) { return floor(x); }
TANG double tang_dexp21(double x) { return exp2(x); }
TANG double tang_dlog21(double x) { return log2(x); }
TANG double tang_dsin1(double x) { return sin(x); }
TANG double tang_datan21(double y, double x) { return atan2(y, x); }
// The nearest f32 with a sticky last bit: a second rounding to a narrower format is then exact.
TANG float tang_odd(double d) {
  float f = (float)d;
  if ((double)f == d || d != d || f - f != 0) return f;
  uint32_t u = tang_u1(f);
  if (fabs((double)f) > fabs(d)) u -= 1;
  return tang_f1(u | 1);
}
)";
}  // namespace

std::string cuda_prelude() { return cuda_head + std::string(narrow_formats()); }

}  // namespace tang::emit
