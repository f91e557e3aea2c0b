// The head of every C unit: vector types, loads and stores of the formats, and our own elementary functions.
// Accuracy against the real value (tests/emit measures it): exp2, log2, sin and atan2 within 2 ulp of f32
// everywhere, subnormal results included. In f64 kernels these four are the C library's.
#include "tang/base/error.hpp"
#include "tang/emit/c.hpp"

namespace tang::emit {

namespace {
const char* const head = R"(#include <stdint.h>
#include <string.h>
#include <math.h>
#define TANG static inline __attribute__((always_inline, unused))
TANG int64_t tang_lesser(int64_t a, int64_t b) { return a < b ? a : b; }
TANG int64_t tang_greater(int64_t a, int64_t b) { return a > b ? a : b; }
TANG int64_t tang_floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }
TANG int64_t tang_div(int64_t a, int64_t b) { return b > 0 ? tang_floor_div(a, b) : 0; }
TANG int64_t tang_mod(int64_t a, int64_t b) { return b > 0 ? a - tang_floor_div(a, b) * b : 0; }
TANG int64_t tang_shl(int64_t a, int64_t n) { return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a << n); }
TANG int64_t tang_shr(int64_t a, int64_t n) { return n < 0 || n > 63 ? (a < 0 ? -1 : 0) : a >> n; }
TANG int64_t tang_shru(int64_t a, int64_t n) { return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a >> n); }
TANG float tang_max1(float a, float b) { return b != b ? b : a < b ? b : a; }
TANG float tang_min1(float a, float b) { return b != b ? b : b < a ? b : a; }
TANG int64_t tang_trunc(double r) {
  return r != r ? 0 : r >= 0x1p63 ? INT64_MAX : r <= -0x1p63 ? INT64_MIN : (int64_t)r;
}
TANG uint32_t tang_u1(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
TANG float tang_f1(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
TANG float tang_sqrt1(float x) { return __builtin_sqrtf(x); }
TANG float tang_fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#define tang_sel1(m, a, b) ((m) ? (a) : (b))
#define tang_seli1(m, a, b) ((m) ? (a) : (b))
#define tang_real1(i) ((float)(i))
#define tang_whole1(x) ((int32_t)(x))
#define tang_splat1(x) (x)
#define tang_ints1(x) (x)
#define tang_not1(m) (!(m))
#define tang_less1(a, b) ((a) < (b))
TANG float tang_upper1(float a, float b) { return a > b ? a : b; }  // b where either is NaN
TANG float tang_lower1(float a, float b) { return a < b ? a : b; }
#define tang_equal1(a, b) ((a) == (b))
#define tang_iless1(a, b) ((a) < (b))

// f64 values.
TANG uint64_t tang_du(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
#define tang_dsel1(m, a, b) ((m) ? (a) : (b))
TANG double tang_dmax1(double a, double b) { return b != b ? b : a < b ? b : a; }
TANG double tang_dmin1(double a, double b) { return b != b ? b : b < a ? b : a; }
TANG double tang_dratio1(double a, double b) { return b == 0 ? 0 : a / b; }
TANG double tang_dsqrt1(double x) { return __builtin_sqrt(x); }
TANG double tang_dfma1(double a, double b, double c) { return __builtin_fma(a, b, c); }
TANG double tang_dfloor1(double x) { return __builtin_floor(x); }
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
const char* const narrow = R"(
// Narrow formats, one element.
TANG float tang_from_f16(uint16_t h) {
  const uint32_t m = h & 0x7fffu, s = (uint32_t)(h & 0x8000u) << 16;
  const float f = tang_f1(m << 13) * 0x1p112f;
  return tang_f1((m >= 0x7c00u ? 0x7f800000u | (m & 0x3ffu) << 13 : tang_u1(f)) | s);
}
TANG uint16_t tang_to_f16(float x) {
  const uint32_t u = tang_u1(x), s = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  const uint32_t small = tang_u1(tang_f1(a) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
  const uint32_t r = a < 0x38800000u ? small : a > 0x7f800000u ? 0x7e00u : a >= 0x477ff000u ? 0x7c00u : normal;
  return (uint16_t)(r | s);
}
TANG float tang_from_bf16(uint16_t h) { return tang_f1((uint32_t)h << 16); }
TANG uint16_t tang_to_bf16(float x) {
  const uint32_t u = tang_u1(x);
  return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
TANG float tang_from_tf32(float x) { return x; }
TANG float tang_to_tf32(float x) {
  const uint32_t u = tang_u1(x);
  return (u & 0x7f800000u) == 0x7f800000u ? x : tang_f1((u + 0xfffu + ((u >> 13) & 1u)) & ~0x1fffu);
}
TANG float tang_from_e5m2(uint8_t b) { return tang_from_f16((uint16_t)(b << 8)); }
TANG float tang_from_e4m3(uint8_t b) {
  const uint32_t m = b & 0x7fu, s = (uint32_t)(b & 0x80u) << 24;
  return tang_f1((m == 0x7fu ? 0x7fc00000u : tang_u1(tang_f1(m << 20) * 0x1p120f)) | s);
}
// Rounds |x| to `mantissa` bits with the least exponent `least`, ties to even; the caller handles overflow.
TANG float tang_grid(float x, int mantissa, int least) {
  int e = (int)(tang_u1(x) >> 23 & 255) - 127;
  if (e < least) e = least;
  const float q = tang_f1((uint32_t)(e - mantissa + 23 + 127) << 23) * 1.5f;
  return (x + q) - q;
}
TANG uint8_t tang_to_e5m2(float x) {
  const uint8_t s = (uint8_t)(tang_u1(x) >> 24 & 0x80);
  const float a = fabsf(x);
  if (a != a) return s | 0x7f;
  const float g = a >= 65536 ? INFINITY : tang_grid(a, 2, -14);
  return s | (g > 57344 ? 0x7c : (uint8_t)(tang_to_f16(g) >> 8));
}
TANG uint8_t tang_to_e4m3(float x) {
  const uint8_t s = (uint8_t)(tang_u1(x) >> 24 & 0x80);
  const float a = fabsf(x);
  const float g = a < 1024 ? tang_grid(a, 3, -6) : INFINITY;
  if (!(g <= 448)) return s | 0x7f;
  return s | (uint8_t)(tang_u1(g * 0x1p-120f) >> 20);
}
)";

// Lanes: @W lanes of f32, @H lanes of f64.
const char* const vectors = R"(
enum { W = @W, H = @H };
typedef float F __attribute__((vector_size(@W * 4)));
typedef int32_t I __attribute__((vector_size(@W * 4)));
typedef uint32_t U __attribute__((vector_size(@W * 4)));
typedef double D __attribute__((vector_size(@H * 8)));
typedef long long L __attribute__((vector_size(@H * 8)));
typedef float Fm __attribute__((vector_size(@W * 4), aligned(4), may_alias));
typedef double Dm __attribute__((vector_size(@H * 8), aligned(8), may_alias));
typedef uint16_t Hv __attribute__((vector_size(@W * 2)));
typedef uint16_t Hm __attribute__((vector_size(@W * 2), aligned(2), may_alias));
#define tang_uW(x) ((U)(x))
#define tang_fW(x) ((F)(x))
#define tang_realW(i) __builtin_convertvector(i, F)
#define tang_wholeW(x) __builtin_convertvector(x, I)
TANG F tang_splatW(float x) { return x - (F){}; }  // keeps -0
TANG I tang_intsW(int32_t x) { return x - (I){}; }
TANG D tang_dsplatW(double x) { return x - (D){}; }
TANG L tang_dintsW(int64_t x) { return x - (L){}; }
TANG I tang_iota(void) { I r; for (int l = 0; l < W; ++l) r[l] = l; return r; }
TANG L tang_diota(void) { L r; for (int l = 0; l < H; ++l) r[l] = l; return r; }
#define tang_clamp(x) (tang_lesser(tang_greater(x, -(1 << 30)), 1 << 30))
// Masks: M beside F and I, N beside D and L. One bit a lane where the machine has such registers, else a vector of 0 and -1.
#if @W == 16 && defined __AVX512F__ && defined __AVX512DQ__ && defined __AVX512BW__
typedef uint16_t M;
typedef uint8_t N;
#define tang_at(m, l) ((m) >> (l) & 1)
#define tang_dat(m, l) ((m) >> (l) & 1)
#define tang_notW(m) ((M)~(m))
#define tang_dnotW(m) ((N)~(m))
TANG M tang_allW(int on) { return (M)-on; }
TANG N tang_dallW(int on) { return (N)-on; }
TANG M tang_liveW(int64_t n) { return n >= 16 ? 0xffff : n <= 0 ? 0 : (M)((1u << n) - 1); }
TANG N tang_dliveW(int64_t n) { return n >= 8 ? 0xff : n <= 0 ? 0 : (N)((1u << n) - 1); }
TANG M tang_lessW(F a, F b) { return __builtin_ia32_cmpps512_mask(a, b, 17, -1, 4); }
TANG M tang_equalW(F a, F b) { return __builtin_ia32_cmpps512_mask(a, b, 0, -1, 4); }
TANG M tang_ilessW(I a, I b) { return __builtin_ia32_cmpd512_mask(a, b, 1, -1); }
TANG M tang_iequalW(I a, I b) { return __builtin_ia32_cmpd512_mask(a, b, 0, -1); }
TANG N tang_dlessW(D a, D b) { return __builtin_ia32_cmppd512_mask(a, b, 17, -1, 4); }
TANG N tang_dequalW(D a, D b) { return __builtin_ia32_cmppd512_mask(a, b, 0, -1, 4); }
TANG N tang_dilessW(L a, L b) { return __builtin_ia32_cmpq512_mask(a, b, 1, -1); }
TANG N tang_diequalW(L a, L b) { return __builtin_ia32_cmpq512_mask(a, b, 0, -1); }
#if defined __clang__
TANG F tang_selW(M m, F a, F b) { return __builtin_ia32_selectps_512(m, a, b); }
TANG I tang_seliW(M m, I a, I b) { return __builtin_ia32_selectd_512(m, a, b); }
TANG D tang_dselW(N m, D a, D b) { return __builtin_ia32_selectpd_512(m, a, b); }
TANG L tang_dseliW(N m, L a, L b) { return __builtin_ia32_selectq_512(m, a, b); }
TANG F tang_sqrtW(F x) { return __builtin_ia32_sqrtps512(x, 4); }
TANG D tang_dsqrtW(D x) { return __builtin_ia32_sqrtpd512(x, 4); }
TANG F tang_upperW(F a, F b) { return tang_selW(tang_lessW(b, a), a, b); }
TANG F tang_lowerW(F a, F b) { return tang_selW(tang_lessW(a, b), a, b); }
TANG F tang_maxW(F a, F b) { return tang_selW(~tang_equalW(b, b), b, tang_selW(tang_lessW(a, b), b, a)); }
TANG F tang_minW(F a, F b) { return tang_selW(~tang_equalW(b, b), b, tang_selW(tang_lessW(b, a), b, a)); }
#else
TANG F tang_selW(M m, F a, F b) { return __builtin_ia32_blendmps_512_mask(b, a, m); }
TANG I tang_seliW(M m, I a, I b) { return __builtin_ia32_blendmd_512_mask(b, a, m); }
TANG D tang_dselW(N m, D a, D b) { return __builtin_ia32_blendmpd_512_mask(b, a, m); }
TANG L tang_dseliW(N m, L a, L b) { return __builtin_ia32_blendmq_512_mask(b, a, m); }
TANG F tang_sqrtW(F x) { return __builtin_ia32_sqrtps512_mask(x, x, -1, 4); }
TANG D tang_dsqrtW(D x) { return __builtin_ia32_sqrtpd512_mask(x, x, -1, 4); }
TANG F tang_upperW(F a, F b) { return __builtin_ia32_maxps512_mask(a, b, b, -1, 4); }
TANG F tang_lowerW(F a, F b) { return __builtin_ia32_minps512_mask(a, b, b, -1, 4); }
// vmaxps is b > a ? b : a; where b is NaN its own value stays.
TANG F tang_maxW(F a, F b) { return __builtin_ia32_maxps512_mask(b, a, b, tang_equalW(b, b), 4); }
TANG F tang_minW(F a, F b) { return __builtin_ia32_minps512_mask(b, a, b, tang_equalW(b, b), 4); }
#endif
TANG F tang_load_maskedW(const float* p, M m) { return __builtin_ia32_loadups512_mask((void*)p, (F){}, m); }
TANG D tang_dload_maskedW(const double* p, N m) { return __builtin_ia32_loadupd512_mask((void*)p, (D){}, m); }
TANG void tang_store_maskedW(float* p, M m, F v) { __builtin_ia32_storeups512_mask((void*)p, v, m); }
TANG void tang_dstore_maskedW(double* p, N m, D v) { __builtin_ia32_storeupd512_mask((void*)p, v, m); }
#else
typedef I M;
typedef L N;
#define tang_at(m, l) ((m)[l])
#define tang_dat(m, l) ((m)[l])
#define tang_notW(m) (~(m))
#define tang_dnotW(m) (~(m))
TANG M tang_allW(int on) { return tang_intsW(-on); }
TANG N tang_dallW(int on) { return tang_dintsW(-on); }
TANG M tang_liveW(int64_t n) { return tang_iota() < tang_intsW((int32_t)tang_clamp(n)); }
TANG N tang_dliveW(int64_t n) { return (N)(tang_diota() < tang_dintsW(n)); }
TANG M tang_lessW(F a, F b) { return a < b; }
TANG M tang_equalW(F a, F b) { return a == b; }
TANG M tang_ilessW(I a, I b) { return a < b; }
TANG M tang_iequalW(I a, I b) { return a == b; }
TANG N tang_dlessW(D a, D b) { return (N)(a < b); }
TANG N tang_dequalW(D a, D b) { return (N)(a == b); }
TANG N tang_dilessW(L a, L b) { return (N)(a < b); }
TANG N tang_diequalW(L a, L b) { return (N)(a == b); }
TANG F tang_selW(M m, F a, F b) { return (F)((m & (I)a) | (~m & (I)b)); }
TANG I tang_seliW(M m, I a, I b) { return (m & a) | (~m & b); }
TANG D tang_dselW(N m, D a, D b) { return (D)((m & (L)a) | (~m & (L)b)); }
TANG L tang_dseliW(N m, L a, L b) { return (m & a) | (~m & b); }
TANG F tang_sqrtW(F x) { F r; for (int l = 0; l < W; ++l) r[l] = __builtin_sqrtf(x[l]); return r; }
TANG D tang_dsqrtW(D x) { D r; for (int l = 0; l < H; ++l) r[l] = __builtin_sqrt(x[l]); return r; }
TANG F tang_upperW(F a, F b) { return tang_selW(a > b, a, b); }
TANG F tang_lowerW(F a, F b) { return tang_selW(a < b, a, b); }
TANG F tang_maxW(F a, F b) { return tang_selW(b != b, b, tang_selW(a < b, b, a)); }
TANG F tang_minW(F a, F b) { return tang_selW(b != b, b, tang_selW(b < a, b, a)); }
TANG F tang_load_maskedW(const float* p, M m) { F r; for (int l = 0; l < W; ++l) r[l] = m[l] ? p[l] : 0; return r; }
TANG D tang_dload_maskedW(const double* p, N m) { D r; for (int l = 0; l < H; ++l) r[l] = m[l] ? p[l] : 0; return r; }
TANG void tang_store_maskedW(float* p, M m, F v) { for (int l = 0; l < W; ++l) if (m[l]) p[l] = v[l]; }
TANG void tang_dstore_maskedW(double* p, N m, D v) { for (int l = 0; l < H; ++l) if (m[l]) p[l] = v[l]; }
#endif
TANG M tang_selmW(M m, M a, M b) { return (M)((m & a) | (tang_notW(m) & b)); }
TANG N tang_dselmW(N m, N a, N b) { return (N)((m & a) | (tang_dnotW(m) & b)); }
TANG M tang_sameW(M a, M b) { return tang_notW(a ^ b); }
TANG N tang_dsameW(N a, N b) { return tang_dnotW(a ^ b); }
TANG I tang_mask_ints(M m) { return tang_seliW(m, tang_intsW(-1), (I){}); }
TANG L tang_dmask_ints(N m) { return tang_dseliW(m, tang_dintsW(-1), (L){}); }
TANG M tang_mask_of(I i) { return tang_ilessW(i, (I){}); }
TANG N tang_dmask_of(L i) { return tang_dilessW(i, (L){}); }
#if @W == 16 && defined __AVX512F__
TANG F tang_fmaW(F a, F b, F c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }
TANG D tang_dfmaW(D a, D b, D c) { return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4); }
#elif @W == 8 && defined __FMA__
TANG F tang_fmaW(F a, F b, F c) { return __builtin_ia32_vfmaddps256(a, b, c); }
TANG D tang_dfmaW(D a, D b, D c) { return __builtin_ia32_vfmaddpd256(a, b, c); }
#elif @W == 4 && defined __FMA__
TANG F tang_fmaW(F a, F b, F c) { return __builtin_ia32_vfmaddps(a, b, c); }
TANG D tang_dfmaW(D a, D b, D c) { return __builtin_ia32_vfmaddpd(a, b, c); }
#else
TANG F tang_fmaW(F a, F b, F c) { F r; for (int l = 0; l < W; ++l) r[l] = __builtin_fmaf(a[l], b[l], c[l]); return r; }
TANG D tang_dfmaW(D a, D b, D c) { D r; for (int l = 0; l < H; ++l) r[l] = __builtin_fma(a[l], b[l], c[l]); return r; }
#endif
TANG D tang_dfloorW(D x) { D r; for (int l = 0; l < H; ++l) r[l] = __builtin_floor(x[l]); return r; }
TANG D tang_dexp2W(D x) { D r; for (int l = 0; l < H; ++l) r[l] = exp2(x[l]); return r; }
TANG D tang_dlog2W(D x) { D r; for (int l = 0; l < H; ++l) r[l] = log2(x[l]); return r; }
TANG D tang_dsinW(D x) { D r; for (int l = 0; l < H; ++l) r[l] = sin(x[l]); return r; }
TANG D tang_datan2W(D y, D x) { D r; for (int l = 0; l < H; ++l) r[l] = atan2(y[l], x[l]); return r; }
TANG D tang_dmaxW(D a, D b) { return tang_dselW(tang_dequalW(b, b), tang_dselW(tang_dlessW(a, b), b, a), b); }
TANG D tang_dminW(D a, D b) { return tang_dselW(tang_dequalW(b, b), tang_dselW(tang_dlessW(b, a), b, a), b); }
TANG D tang_dratioW(D a, D b) { return tang_dselW(tang_dequalW(b, (D){}), (D){}, a / b); }
TANG F tang_loadW(const float* p) { return *(const Fm*)p; }
TANG D tang_dloadW(const double* p) { return *(const Dm*)p; }
TANG void tang_storeW(float* p, F v) { *(Fm*)p = v; }
TANG void tang_dstoreW(double* p, D v) { *(Dm*)p = v; }
TANG F tang_load_bf16(const uint16_t* p) { return (F)(__builtin_convertvector(*(const Hm*)p, U) << 16); }
TANG F tang_load_f16(const uint16_t* p) {
  const U h = __builtin_convertvector(*(const Hm*)p, U), m = h & 0x7fff, s = (h & 0x8000) << 16;
  const F f = (F)(m << 13) * 0x1p112f;
  return (F)((U)tang_selW(tang_ilessW(tang_intsW(0x7bff), (I)m), (F)(0x7f800000 | (m & 0x3ff) << 13), f) | s);
}
TANG void tang_store_bf16(uint16_t* p, F x) {
  const U u = (U)x, r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  *(Hm*)p = __builtin_convertvector((U)tang_seliW(tang_ilessW(tang_intsW(0x7f800000), (I)(u & 0x7fffffff)), (I)((u >> 16) | 0x40), (I)r), Hv);
}
TANG void tang_store_f16(uint16_t* p, F x) {
  const U u = (U)x, s = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  const U low = (U)((F)a + 0.5f) - 0x3f000000, normal = (a + 0xc8000fff + ((a >> 13) & 1)) >> 13;
  I r = tang_seliW(tang_ilessW(tang_intsW(0x477fefff), (I)a), tang_intsW(0x7c00), (I)normal);
  r = tang_seliW(tang_ilessW(tang_intsW(0x7f800000), (I)a), tang_intsW(0x7e00), r);
  r = tang_seliW(tang_ilessW((I)a, tang_intsW(0x38800000)), (I)low, r);
  *(Hm*)p = __builtin_convertvector((U)r | s, Hv);
}
@SHUFFLES
#define tang_scale1(p, t, n) tang_scale_by_parts1(p, t)
#if @W == 16 && defined __AVX512F__
#define tang_scaleW(p, t, n) __builtin_ia32_scalefps512_mask(p, n, p, -1, 4)
#else
#define tang_scaleW(p, t, n) tang_scale_by_partsW(p, t)
#endif
// Writes a whole aligned line past the caches.
#if @W == 16 && defined __AVX512F__ && defined __clang__
TANG void tang_stream(float* p, F v) { if ((uintptr_t)p & 63) *(Fm*)p = v; else __builtin_nontemporal_store(v, (F*)p); }
#define tang_stream_fence() __builtin_ia32_sfence()
#elif @W == 16 && defined __AVX512F__
TANG void tang_stream(float* p, F v) { if ((uintptr_t)p & 63) *(Fm*)p = v; else __builtin_ia32_movntps512(p, v); }
#define tang_stream_fence() __builtin_ia32_sfence()
#else
TANG void tang_stream(float* p, F v) { *(Fm*)p = v; }
#define tang_stream_fence() (void)0
#endif
)";

// $: the suffix of the width; F, I, U its types.
const char* const functions = R"(
TANG $F tang_ratio$($F a, $F b) { return tang_sel$(tang_equal$(b, tang_splat$(0.0f)), tang_splat$(0.0f), a / b); }
TANG $F tang_abs$($F x) { return tang_f$(tang_u$(x) & 0x7fffffffu); }
TANG $F tang_floor$($F x) {
  const $M whole = tang_less$(tang_abs$(x), tang_splat$(0x1p23f));
  const $F t = tang_real$(tang_whole$(tang_sel$(whole, x, tang_splat$(0.0f))));
  const $F r = t - tang_sel$(tang_less$(x, t), tang_splat$(1.0f), tang_splat$(0.0f));
  return tang_sel$(whole & tang_not$(tang_equal$(t, x)), r, x);
}
// p 2^n, rounded once; t is n + 0x1.8p23 and |n| <= 150.
TANG $F tang_scale_by_parts$($F p, $F t) {
  const $I n = ($I)(tang_u$(t) - 0x4b400000u), half = n >> 1;
  return p * tang_f$(($U)(half + 127) << 23) * tang_f$(($U)(n - half + 127) << 23);
}
TANG $F tang_exp2$($F x) {
  const $F c = tang_lower$(tang_splat$(128.0f), tang_upper$(tang_splat$(-150.0f), x));  // NaN stays
  const $F t = c + 0x1.8p23f, n = t - 0x1.8p23f, r = c - n;
  $F p = tang_splat$(0x1.44175ep-13f);
  p = tang_fma$(p, r, tang_splat$(0x1.5ef5d0p-10f));
  p = tang_fma$(p, r, tang_splat$(0x1.3b2a54p-7f));
  p = tang_fma$(p, r, tang_splat$(0x1.c6af9cp-5f));
  p = tang_fma$(p, r, tang_splat$(0x1.ebfbe0p-3f));
  p = tang_fma$(p, r, tang_splat$(0x1.62e430p-1f));
  p = tang_fma$(p, r, tang_splat$(1.0f));
  return tang_scale$(p, t, n);
}
TANG $F tang_log2$($F x) {
  const $M tiny = tang_less$(x, tang_splat$(0x1p-126f));
  const $U u = tang_u$(tang_sel$(tiny, x * 0x1p23f, x)) - 0x3f3504f3u;
  const $F f = tang_f$((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const $F e = tang_real$(($I)u >> 23) - tang_sel$(tiny, tang_splat$(23.0f), tang_splat$(0.0f));
  $F p = tang_splat$(0x1.82fa3ap-4f);
  p = tang_fma$(p, f, tang_splat$(-0x1.517e40p-3f));
  p = tang_fma$(p, f, tang_splat$(0x1.5e1a2ap-3f));
  p = tang_fma$(p, f, tang_splat$(-0x1.6fe35ep-3f));
  p = tang_fma$(p, f, tang_splat$(0x1.a476bep-3f));
  p = tang_fma$(p, f, tang_splat$(-0x1.ec654ap-3f));
  p = tang_fma$(p, f, tang_splat$(0x1.277c44p-2f));
  p = tang_fma$(p, f, tang_splat$(-0x1.7154c6p-2f));
  p = tang_fma$(p, f, tang_splat$(0x1.ec7094p-2f));
  p = tang_fma$(p, f, tang_splat$(-0x1.715476p-1f));
  const $F h = f * 0x1.715476p+0f;
  const $F l = tang_fma$(f, tang_splat$(0x1.715476p+0f), -h) + f * 0x1.4ae0c0p-26f;
  const $F s = e + h, err = h - (s - e);
  $F r = s + (err + tang_fma$(f * f, p, l));
  r = tang_sel$(tang_equal$(x, tang_splat$(0.0f)), tang_splat$(-__builtin_inff()), r);
  r = tang_sel$(tang_equal$(x, tang_splat$(__builtin_inff())), x, r);
  return tang_sel$(tang_less$(tang_splat$(-1.0f) , tang_sel$(tang_less$(x, tang_splat$(0.0f)), tang_splat$(-2.0f), x)), r, tang_splat$(__builtin_nanf("")));
}
TANG $F tang_sin_near$($F x) {
  const $F t = tang_fma$(x, tang_splat$(0x1.45f306p-2f), tang_splat$(0x1.8p23f)), k = t - 0x1.8p23f;
  $F r = tang_fma$(k, tang_splat$(-0x1.921fb6p+1f), x);
  r = tang_fma$(k, tang_splat$(0x1.777a5cp-24f), r);
  r = tang_fma$(k, tang_splat$(0x1.ee59dap-49f), r);
  const $F z = r * r;
  $F p = tang_splat$(-0x1.dfe85ep-26f);
  p = tang_fma$(p, z, tang_splat$(0x1.747576p-19f));
  p = tang_fma$(p, z, tang_splat$(-0x1.a02e42p-13f));
  p = tang_fma$(p, z, tang_splat$(0x1.11114ap-7f));
  p = tang_fma$(p, z, tang_splat$(-0x1.555556p-3f));
  const $F s = tang_fma$(r * z, p, r);
  return tang_sel$(tang_less$(tang_abs$(x), tang_splat$(0x1p-12f)), x, tang_f$(tang_u$(s) ^ (tang_u$(t) << 31)));
}
TANG $F tang_atan2$($F y, $F x) {
  const $F ax = tang_abs$(x), ay = tang_abs$(y), inf = tang_splat$(__builtin_inff());
  const $M steep = tang_less$(ax, ay);
  const $F top = tang_sel$(steep, ay, ax), low = tang_sel$(steep, ax, ay);
  $F t = tang_sel$(tang_equal$(top, tang_splat$(0.0f)), top, low / top);
  t = tang_sel$(tang_equal$(low, inf), tang_splat$(1.0f), t);
  const $F z = t * t;
  $F p = tang_splat$(0x1.bbab1ep-10f);
  p = tang_fma$(p, z, tang_splat$(-0x1.4b1c42p-7f));
  p = tang_fma$(p, z, tang_splat$(0x1.ce2572p-6f));
  p = tang_fma$(p, z, tang_splat$(-0x1.a1f138p-5f));
  p = tang_fma$(p, z, tang_splat$(0x1.256f7cp-4f));
  p = tang_fma$(p, z, tang_splat$(-0x1.6ff086p-4f));
  p = tang_fma$(p, z, tang_splat$(0x1.c6a61cp-4f));
  p = tang_fma$(p, z, tang_splat$(-0x1.2490b8p-3f));
  p = tang_fma$(p, z, tang_splat$(0x1.9999bep-3f));
  p = tang_fma$(p, z, tang_splat$(-0x1.555556p-2f));
  $F a = tang_fma$(t * z, p, t);
  a = tang_sel$(steep, (0x1.921fb6p+0f - a) + -0x1.777a5cp-25f, a);
  a = tang_sel$(tang_iless$(($I)tang_u$(x), tang_ints$(0)), (0x1.921fb6p+1f - a) + -0x1.777a5cp-24f, a);
  a = tang_f$(tang_u$(a) | (tang_u$(y) & 0x80000000u));
  return tang_sel$(tang_equal$(x, x) & tang_equal$(y, y), a, x + y);
}
)";
const char* const sines = R"(
// |x| > 2^15: the fraction of x / pi from the bits of 1 / pi that matter.
static __attribute__((noinline, unused)) float tang_sin_far(float x) {
  static const uint32_t bits[] = {0x517cc1b7, 0x27220a94, 0xfe13abe8, 0xfa9a6ee0, 0x6db14acc, 0x9e21c820, 0xff28b1d5};
  const uint32_t u = tang_u1(x), e = u >> 23 & 255;
  if (e == 255) return x - x;
  const uint64_t m = (u & 0x7fffff) | 0x800000;
  const int shift = (int)e - 150;  // x = m 2^shift; drop the bits whose product is a multiple of 2
  const int from = shift > 1 ? shift - 1 : 0, word = from >> 5, off = from & 31;
  uint32_t w[3];
  for (int i = 0; i < 3; ++i)
    w[i] = off ? bits[word + i] << off | bits[word + i + 1] >> (32 - off) : bits[word + i];
  // m 2^shift / pi modulo 2, with 64 bits of fraction: the window begins `from` bits below the point of 1 / pi.
  const int lift = shift - from;  // 1, or shift itself when it is small or negative
  unsigned __int128 p = (unsigned __int128)m * (((uint64_t)w[0] << 32) | w[1]) + ((m * w[2]) >> 32);
  // p is x / pi * 2^(64 - lift)
  unsigned __int128 q = lift >= 0 ? p << lift : p >> -lift;
  const uint64_t fraction = (uint64_t)q, odd = (uint64_t)(q >> 64) & 1;
  const uint64_t up = fraction >> 63;  // nearest multiple
  const int64_t near = (int64_t)fraction;
  const double r = (double)near * 0x1p-64 * 3.14159265358979323846;
  const double z = r * r;
  const double s = r * (1 + z * (-0x1.5555555555555p-3 + z * (0x1.1111111111111p-7 + z * (-0x1.a01a01a01a01ap-13 +
                   z * (0x1.71de3a556c734p-19 + z * (-0x1.ae64567f544e4p-26 + z * 0x1.6124613a86d09p-33))))));
  return (float)(((odd ^ up) != 0) != ((u >> 31) != 0) ? -s : s);
}
TANG float tang_sin1(float x) { return tang_abs1(x) <= 32768.0f ? tang_sin_near1(x) : tang_sin_far(x); }
TANG F tang_sinW(F x) {
  F r = tang_sin_nearW(x);
  int far = 0;
  for (int l = 0; l < W; ++l) far |= !(tang_abs1(x[l]) <= 32768.0f);
  if (__builtin_expect(far, 0))
    for (int l = 0; l < W; ++l)
      if (!(tang_abs1(x[l]) <= 32768.0f)) r[l] = tang_sin_far(x[l]);
  return r;
}
)";

std::string replaced(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size())
    s.replace(at, from.size(), to);
  return s;
}

// Lane l of swap<d> is lane l ^ d; groups stores lane l of four vectors as four neighbours at p + l s.
std::string shuffles(int lanes) {
  std::string out;
  auto list = [&](int n, auto lane) {
    std::string s;
    for (int l = 0; l < n; ++l) s += ", " + std::to_string(lane(l));
    return s;
  };
  for (int d = 1; d < lanes; d *= 2)
    out += "TANG F tang_swap" + std::to_string(d) + "(F v) { return __builtin_shufflevector(v, v" +
           list(lanes, [&](int l) { return l ^ d; }) + "); }\n";
  for (int d = 1; d < lanes / 2; d *= 2)
    out += "TANG D tang_dswap" + std::to_string(d) + "(D v) { return __builtin_shufflevector(v, v" +
           list(lanes / 2, [&](int l) { return l ^ d; }) + "); }\n";
  auto pairs = [&](int from) { // within each four lanes: elements from, from + 1 of two vectors, interleaved
    return list(lanes, [&](int l) { return (l & ~3) + from + (l & 3) / 2 + (l & 1) * lanes; });
  };
  auto halves = [&](int from) {
    return list(lanes, [&](int l) { return (l & ~3) + from + (l & 1) + ((l & 3) / 2) * lanes; });
  };
  out += "typedef float F4 __attribute__((vector_size(16)));\ntypedef float F4m "
         "__attribute__((vector_size(16), aligned(4), may_alias));\n";
  out += "TANG void tang_groups(float* p, int64_t s, F a, F b, F c, F d) {\n";
  for (int h = 0; h < 2; ++h) {
    const std::string n = std::to_string(h);
    out += "  const F ab" + n + " = __builtin_shufflevector(a, b" + pairs(2 * h) + "), cd" + n +
           " = __builtin_shufflevector(c, d" + pairs(2 * h) + ");\n";
    for (int e = 0; e < 2; ++e)
      out += "  const F q" + std::to_string(2 * h + e) + " = __builtin_shufflevector(ab" + n + ", cd" + n +
             halves(2 * e) + ");\n";
  }
  for (int l = 0; l < lanes; ++l) {
    const int g = l & ~3;
    const std::string q = "q" + std::to_string(l & 3);
    out += "  *(F4m*)(p + " + std::to_string(l) + " * s) = __builtin_shufflevector(" + q + ", " + q +
           list(4, [&](int i) { return g + i; }) + ");\n";
  }
  return out + "}\n";
}

std::string functions_of(const char* f, const char* i, const char* u, const char* m, const char* suffix) {
  std::string s = replaced(replaced(replaced(replaced(functions, "$F", f), "$I", i), "$U", u), "$M", m);
  return replaced(s, "$", suffix);
}
} // namespace

const char* narrow_formats() { return narrow; }
std::string c_prelude(const COptions& o) {
  check(o.lanes == 4 || o.lanes == 8 || o.lanes == 16, "lanes of the C target are 4, 8 or 16");
  std::string v =
      replaced(replaced(vectors, "@W", std::to_string(o.lanes)), "@H", std::to_string(o.lanes / 2));
  v = replaced(v, "@SHUFFLES", shuffles(o.lanes));
  return head + std::string(narrow) + v + functions_of("float", "int32_t", "uint32_t", "int", "1") +
         functions_of("F", "I", "U", "M", "W") + sines;
}

} // namespace tang::emit
