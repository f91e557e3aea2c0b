// The head of every C unit: vector types, loads and stores of the formats, and our own elementary functions. The
// scalar row has no vector types and asks for no header: the smallest C compilers take it, with no system around them.
// Accuracy against the real value (tests/emit measures it): exp2, log2, sin and atan2 within 2 ulp of f32
// everywhere, subnormal results included. In f64 kernels these four are the C library's.
#include "tang/base/error.hpp"
#include "tang/emit/c.hpp"
#include "tang/emit/shared_text.hpp"

namespace tang::emit {

namespace {
const char* const headers = R"(#include <stdint.h>
#include <string.h>
#include <math.h>
)";
const char* const no_headers = R"(typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT32_MAX 0x7fffffff
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 0x7fffffffffffffffLL
#define INT64_MIN (-INT64_MAX - 1)
void* memcpy(void*, const void*, __SIZE_TYPE__);
float sqrtf(float), fmaf(float, float, float);
double sqrt(double), fma(double, double, double), floor(double), fabs(double);
double exp2(double), log2(double), sin(double), atan2(double, double);
#ifdef __TINYC__
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#define __builtin_inf() (1e300 * 1e300)
#define __builtin_inff() ((float)(1e300 * 1e300))
#define __builtin_nanf(s) tang_f1(0x7fc00000u)
#define __builtin_nan(s) ((double)tang_f1(0x7fc00000u))
#endif
)";
const char* const head = R"(#define TANG static inline __attribute__((always_inline, unused))
TANG float tang_max1(float a, float b) { return b != b ? b : a < b ? b : a; }
TANG float tang_min1(float a, float b) { return b != b ? b : b < a ? b : a; }
TANG uint32_t tang_u1(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
TANG float tang_f1(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
TANG float tang_sqrt1(float x) { return __builtin_sqrtf(x); }
TANG float tang_fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#define tang_sel1(m, a, b) ((m) ? (a) : (b))
#define tang_seli1(m, a, b) ((m) ? (a) : (b))
#define tang_selu1(m, a, b) ((m) ? (a) : (b))
#define tang_both1(a, b) ((a) & (b))
#define tang_int1(u) ((int32_t)(u))
#define tang_unsigned1(i) ((uint32_t)(i))
#define tang_real_of_u1(u) ((float)(u))
#define tang_shift1(x) ((x) + 0x1.8p23f)
#define tang_shifted1(t) ((t) - 0x1.8p23f)
#define tang_count1(t) ((int32_t)(tang_u1(t) - 0x4b400000u))
#define tang_eighths 0x3f800000, 0x3f8b95c2, 0x3f9837f0, 0x3fa5fed7, 0x3fb504f3, 0x3fc5672a, 0x3fd744fd, 0x3feac0c7 // 2^(j/8)
TANG float tang_eighth1(float t) { static const uint32_t table[] = {tang_eighths}; return tang_f1(table[tang_u1(t) & 7]); }
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
#define tang_scale1(p, i, n) tang_scale_by_parts1(p, i)
)";
// A register block of one lane.
const char* const single = R"(
enum { W = 1, H = 1 };
typedef float F;
typedef double D;
typedef int M, N;
#define tang_lane(v, l) (v)
#define tang_at(m, l) (m)
#define tang_dat(m, l) (m)
#define tang_splatW(x) (x)
#define tang_dsplatW(x) (x)
#define tang_liveW(n) ((n) > 0)
#define tang_dliveW(n) ((n) > 0)
#define tang_fmaW(a, b, c) __builtin_fmaf(a, b, c)
#define tang_dfmaW(a, b, c) __builtin_fma(a, b, c)
TANG F tang_loadW(const float* p) { return *p; }
TANG D tang_dloadW(const double* p) { return *p; }
TANG F tang_load_maskedW(const float* p, M m) { return m ? *p : 0; }
TANG D tang_dload_maskedW(const double* p, N m) { return m ? *p : 0; }
TANG F tang_load_f16(const uint16_t* p) { return tang_from_f16(*p); }
TANG F tang_load_bf16(const uint16_t* p) { return tang_from_bf16(*p); }
TANG void tang_storeW(float* p, F v) { *p = v; }
TANG void tang_dstoreW(double* p, D v) { *p = v; }
TANG void tang_store_f16(uint16_t* p, F v) { *p = (uint16_t)tang_to_f16(v); }
TANG void tang_store_bf16(uint16_t* p, F v) { *p = (uint16_t)tang_to_bf16(v); }
)";
// Lanes: @W lanes of f32, @H lanes of f64.
const char* const vectors = R"(
enum { W = @W, H = @H };
#define tang_lane(v, l) ((v)[l])
typedef float F __attribute__((vector_size(@W * 4)));
typedef int32_t I __attribute__((vector_size(@W * 4)));
typedef uint32_t U __attribute__((vector_size(@W * 4)));
typedef double D __attribute__((vector_size(@H * 8)));
typedef long long L __attribute__((vector_size(@H * 8)));
typedef float Fm __attribute__((vector_size(@W * 4), aligned(4), may_alias));
typedef double Dm __attribute__((vector_size(@H * 8), aligned(8), may_alias));
typedef uint8_t Bm __attribute__((vector_size(@W), aligned(1), may_alias));
typedef uint16_t Hv __attribute__((vector_size(@W * 2)));
typedef uint16_t Hm __attribute__((vector_size(@W * 2), aligned(2), may_alias));
#define tang_bothW(a, b) ((a) & (b))
#define tang_intW(u) ((I)(u))
#define tang_unsignedW(i) ((U)(i))
#define tang_shiftW(x) ((x) + 0x1.8p23f)
#define tang_shiftedW(t) ((t) - 0x1.8p23f)
#define tang_countW(t) ((I)((U)(t) - 0x4b400000u))
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
TANG M tang_unorderedW(M seen, F a, F b) { return seen | __builtin_ia32_cmpps512_mask(a, b, 3, -1, 4); } // one is NaN
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
#if @W == 8 && defined __AVX__
TANG M tang_unorderedW(M seen, F a, F b) { return seen | (I)__builtin_ia32_cmpps256(a, b, 3); }
TANG F tang_selW(M m, F a, F b) { return __builtin_ia32_blendvps256(b, a, (F)m); }
TANG I tang_seliW(M m, I a, I b) { return (I)__builtin_ia32_blendvps256((F)b, (F)a, (F)m); }
TANG D tang_dselW(N m, D a, D b) { return __builtin_ia32_blendvpd256(b, a, (D)m); }
TANG L tang_dseliW(N m, L a, L b) { return (L)__builtin_ia32_blendvpd256((D)b, (D)a, (D)m); }
TANG F tang_sqrtW(F x) { return __builtin_ia32_sqrtps256(x); }
TANG D tang_dsqrtW(D x) { return __builtin_ia32_sqrtpd256(x); }
TANG F tang_upperW(F a, F b) { return __builtin_ia32_maxps256(a, b); }
TANG F tang_lowerW(F a, F b) { return __builtin_ia32_minps256(a, b); }
// vmaxps is b > a ? b : a, so a where b is NaN: its own value replaces that.
TANG F tang_maxW(F a, F b) { return tang_selW(b != b, b, __builtin_ia32_maxps256(b, a)); }
TANG F tang_minW(F a, F b) { return tang_selW(b != b, b, __builtin_ia32_minps256(b, a)); }
#else
TANG M tang_unorderedW(M seen, F a, F b) { return seen | (a != a) | (b != b); }
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
#endif
#if @W == 8 && defined __AVX__
TANG F tang_load_maskedW(const float* p, M m) { return __builtin_ia32_maskloadps256((const void*)p, m); }
TANG D tang_dload_maskedW(const double* p, N m) { return __builtin_ia32_maskloadpd256((const void*)p, m); }
TANG void tang_store_maskedW(float* p, M m, F v) { __builtin_ia32_maskstoreps256((void*)p, m, v); }
TANG void tang_dstore_maskedW(double* p, N m, D v) { __builtin_ia32_maskstorepd256((void*)p, m, v); }
#else
TANG F tang_load_maskedW(const float* p, M m) { F r; for (int l = 0; l < W; ++l) r[l] = m[l] ? p[l] : 0; return r; }
TANG D tang_dload_maskedW(const double* p, N m) { D r; for (int l = 0; l < H; ++l) r[l] = m[l] ? p[l] : 0; return r; }
TANG void tang_store_maskedW(float* p, M m, F v) { for (int l = 0; l < W; ++l) if (m[l]) p[l] = v[l]; }
TANG void tang_dstore_maskedW(double* p, N m, D v) { for (int l = 0; l < H; ++l) if (m[l]) p[l] = v[l]; }
#endif
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
TANG M tang_load_boolW(const uint8_t* p) { return tang_ilessW((I){}, __builtin_convertvector(*(const Bm*)p, I)); }
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
#if @W == 16 && defined __AVX512F__
#define tang_scaleW(p, i, n) __builtin_ia32_scalefps512_mask(p, n, p, -1, 4)
#elif @W == 8 && defined __AVX__
// p 2^i, rounded once: 2^(i -+ 32) is a normal number, the factor 2^+-32 that is left rounds. NaN stays in p.
TANG F tang_scaleW(F p, I i, F n) {
  const I biased = (I)__builtin_ia32_blendvps256((F)tang_intsW(127 - 32), (F)tang_intsW(127 + 32), n);
  return p * (F)((U)(i + biased) << 23) * __builtin_ia32_blendvps256(tang_splatW(0x1p32f), tang_splatW(0x1p-32f), n);
}
#else
#define tang_scaleW(p, i, n) tang_scale_by_partsW(p, i)
#endif
// 2^(j/8) for the j in the last bits of t.
TANG F tang_eighthW(F t) {
#if @W == 16 && defined __AVX512F__ && defined __clang__
  return __builtin_ia32_permvarsf512((F)(U){tang_eighths, tang_eighths}, (I)t);
#elif @W == 16 && defined __AVX512F__
  return __builtin_ia32_permvarsf512_mask((F)(U){tang_eighths, tang_eighths}, (I)t, (F){}, -1);
#elif @W == 8 && defined __AVX2__
  return (F)__builtin_ia32_permvarsi256((I)(U){tang_eighths}, (I)t);
#else
  F r;
  for (int l = 0; l < W; ++l) r[l] = tang_eighth1(t[l]);
  return r;
#endif
}
// Writes past the caches, where whole vectors are aligned.
#if @W == 16 && defined __AVX512F__
#define tang_past(p, v) __builtin_ia32_movntps512(p, v)
#elif @W == 8 && defined __AVX__
#define tang_past(p, v) __builtin_ia32_movntps256(p, v)
#elif @W == 4 && defined __SSE__
#define tang_past(p, v) __builtin_ia32_movntps(p, v)
#endif
#if defined tang_past && defined __clang__
#undef tang_past
#define tang_past(p, v) __builtin_nontemporal_store(v, (F*)(p))
#endif
#if defined tang_past
TANG void tang_stream(float* p, F v) { if ((uintptr_t)p & (sizeof v - 1)) *(Fm*)p = v; else tang_past(p, v); }
#define tang_stream_fence() __builtin_ia32_sfence()
#else
TANG void tang_stream(float* p, F v) { *(Fm*)p = v; }
#define tang_stream_fence() (void)0
#endif
)";

// exp2 as 2^i 2^(j/8) 2^r: a table of eight, |r| <= 1/16, (2^r - 1) / r minimax of degree 2 within 4.9e-8 of the result.
const char* const table_exp2 = R"(
TANG F tang_exp2_near$(F r, F s) { // s 2^r
  F p = tang_fma$(tang_splat$(0x1.c83fdcp-5f), r, tang_splat$(0x1.ec0ddap-3f));
  p = tang_fma$(p, r, tang_splat$(0x1.62e418p-1f));
  return tang_fma$(r * s, p, s);
}
TANG F tang_exp2$(F x) {
  const F c = tang_lower$(tang_splat$(128.0f), tang_upper$(tang_splat$(-150.0f), x));  // NaN stays
  const F t = c + 0x1.8p20f;
  const F n = t - 0x1.8p20f;
  return tang_scale$(tang_exp2_near$(c - n, tang_eighth$(t)), tang_int$(tang_u$(t) - 0x49c00000u) >> 3u, n);
}
)";
// The same bits without a clamp and a second factor, where all lanes are far from overflow and from subnormal results: the
// exponent is added to the table's entry; the entry less j << 20 leaves it when the bits of 8 i + j at 20 are added.
const char* const quick_exp2 = R"(
#if @W == 8 && defined __AVX2__
__attribute__((noinline, unused)) static F tang_exp2_farW(F x) { return tang_exp2_anyW(x); }
TANG F tang_exp2_quickW(F x) {
  const U less = {0, 1 << 20, 2 << 20, 3 << 20, 4 << 20, 5 << 20, 6 << 20, 7 << 20};
  const F t = x + 0x1.8p20f;
  const F s = (F)((U)__builtin_ia32_permvarsi256((I)((U){tang_eighths} - less), (I)t) + ((U)t << 20));
  return tang_exp2_nearW(x - (t - 0x1.8p20f), s);
}
// Where s and r s may not be normal numbers.
TANG I tang_nearW(F x) { return (F)((U)x & 0x7fffffffu) < 100.0f; }
TANG int tang_far_of_2W(F a, F b) { return __builtin_ia32_movmskps256((F)(tang_nearW(a) & tang_nearW(b))) != 0xff; }
TANG F tang_exp2W(F x) {
  const F y = tang_exp2_quickW(x);
  return __builtin_expect(__builtin_ia32_movmskps256((F)tang_nearW(x)) == 0xff, 1) ? y : tang_exp2_farW(x);
}
#else
#define tang_exp2W tang_exp2_anyW
#define tang_exp2_quickW tang_exp2_anyW
#define tang_exp2_farW tang_exp2_anyW
#define tang_far_of_2W(a, b) 0
#endif
)";

const char* const sines = R"(
TANG F tang_sinW(F x) {
  F r = tang_sin_nearW(x);
  int far = 0;
  for (int l = 0; l < W; ++l) far |= !(tang_abs1(x[l]) <= 32768.0f);
  if (__builtin_expect(far, 0))
    for (int l = 0; l < W; ++l)
      if (!(tang_abs1(x[l]) <= 32768.0f)) r[l] = tang_sin_far1(x[l]);
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

Spelling spelling(const char* f, const char* i, const char* u, const char* m, const char* suffix) {
  return {{{"F", f}, {"I", i}, {"U", u}, {"M", m}, {"D", "double"}, {"R", "double"}, {"Z", "int64_t"}, {"N", "uint64_t"},
           {"TO_Z", "(int64_t)"}, {"TO_N", "(uint64_t)"}, {"TO_U", ""}, {"ZBITS", "64"}, {"NEAR_SINE", "32768.0f"}, {"ZMAX", "INT64_MAX"}, {"ZMIN", "INT64_MIN"}, {"ZTOP", "0x1p63"},
           {"INF", "__builtin_inff()"}, {"NAN_", "__builtin_nanf(\"\")"}, {"D_SQRT", "__builtin_sqrt"}, {"D_FMA", "__builtin_fma"}},
          suffix};
}
} // namespace

std::string c_prelude(const COptions& o) {
  check(o.lanes == 1 || o.lanes == 4 || o.lanes == 8 || o.lanes == 16, "lanes of the C target are 1, 4, 8 or 16");
  const Spelling one = spelling("float", "int32_t", "uint32_t", "int", "1"), lanes = spelling("F", "I", "U", "M", "W");
  Spelling far = one;
  far.words["TANG"] = "static __attribute__((noinline, unused))";
  auto all = [](const Spelling& x) {
    return spelled(simple_text, x) + spelled(fused_pi_text, x) + spelled(scale_text, x) + spelled(table_exp2, x) + spelled(elementary_text, x);
  };
  const std::string basis = head + spelled(integer_text, one) + spelled(wide_text, one) + spelled(narrow_text, one);
  if (o.lanes == 1) return no_headers + basis + single + all(one) + spelled(far_sine_text, far);
  std::string v =
      replaced(replaced(vectors, "@W", std::to_string(o.lanes)), "@H", std::to_string(o.lanes / 2));
  v = replaced(v, "@SHUFFLES", shuffles(o.lanes));
  return headers + basis + v + all(one) + replaced(all(lanes), "tang_exp2W", "tang_exp2_anyW") +
         replaced(quick_exp2, "@W", std::to_string(o.lanes)) + spelled(far_sine_text, far) + sines;
}

} // namespace tang::emit
