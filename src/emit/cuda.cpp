// The CUDA dialect. No header is included.
#include "tang/emit/cuda.hpp"
#include "tang/emit/gpu_teams.hpp"
#include "tang/emit/gpu_walk.hpp"
#include "tang/emit/shared_text.hpp"
#include "tang/kernel/products.hpp"

namespace tang::emit {

namespace {
// Lanes of clusters on one processor: some wait for memory while others compute; rows that are not stored take fewer
// registers (1000 rows of 151936, variance, H200, 2026-12-01: 127 us with 1024 lanes, 109 with 1536; softmax 219 and 259).
constexpr int resident_lanes = 1024, resident_lanes_unstored = 1536;
constexpr int64_t parts = 8, part_processors = 16; // workgroups of a cluster share a part; some have a few more

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
TANG uint32_t tang_u1(float x) { return __float_as_uint(x); }
TANG float tang_f1(uint32_t u) { return __uint_as_float(u); }
TANG float tang_sqrt1(float x) { return __fsqrt_rn(x); }
TANG float tang_fma1(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TANG float tang_exp21(float x) { return exp2f(x); }
TANG float tang_log21(float x) { return log2f(x); }
TANG float tang_sin1(float x) { return sinf(x); }
TANG float tang_atan21(float y, float x) { return atan2f(y, x); }
TANG float tang_ratio1(float a, float b) { return b == 0 ? 0 : a / b; }
TANG float tang_floor1(float x) { return floorf(x); }
)";

// Order, runs of neighbours, and conversions as the chip has them.
const char* const cuda_tail = R"(
TANG float tang_max_nan(float a, float b) { float c; asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
TANG float tang_min_nan(float a, float b) { float c; asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
TANG float tang_cvt_from_f16(uint16_t h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
TANG uint16_t tang_cvt_to_f16(float x) { uint16_t h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
TANG uint16_t tang_cvt_to_bf16(float x) { uint16_t h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
#define tang_max1 tang_max_nan
#define tang_min1 tang_min_nan
#define tang_from_f16 tang_cvt_from_f16
#define tang_to_f16 tang_cvt_to_f16
#define tang_to_bf16 tang_cvt_to_bf16
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) TangRun { T v[N]; };
// Two elements of 16 bits in each register of r.
TANG uint16_t tang_half_of(const uint32_t* r, int i) { return (uint16_t)(r[i >> 1] >> 16 * (i & 1)); }
TANG void tang_keep_half(uint32_t* r, int i, uint16_t h) {
  r[i >> 1] = i & 1 ? (r[i >> 1] & 0xffff) | (uint32_t)h << 16 : (r[i >> 1] & 0xffff0000u) | h;
}
template <class T> void tang_keep_half(uint32_t* r, int i, T h) = delete; // bits, not a value that would be cut to them
template <int N> TANG void tang_again(uint32_t (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i]));
}
// The larger (smaller) of two pairs of 16-bit numbers, a NaN where one is; of N such pairs and h. Their place in a run.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TANG_HALVES(OF, F) TANG uint32_t tang_##OF##_halves_##F(uint32_t a, uint32_t b) { \
  uint32_t c; asm(#OF ".NaN." #F "x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b)); return c; }
#else
#define TANG_HALVES(OF, F) TANG uint32_t tang_##OF##_halves_##F(uint32_t a, uint32_t b) { \
  return (uint32_t)tang_to_##F(tang_##OF##_nan(tang_from_##F((uint16_t)a), tang_from_##F((uint16_t)b))) | \
         (uint32_t)tang_to_##F(tang_##OF##_nan(tang_from_##F((uint16_t)(a >> 16)), tang_from_##F((uint16_t)(b >> 16)))) << 16; }
#endif
#define TANG_RUN(OF, F) TANG_HALVES(OF, F) template <int N> TANG uint32_t tang_##OF##_run_##F(uint32_t h, const uint32_t* w) { \
  if constexpr (N > 1) return tang_##OF##_halves_##F(tang_##OF##_run_##F<N / 2>(h, w), tang_##OF##_run_##F<N - N / 2 - 1>(w[N / 2], w + N / 2 + 1)); \
  else if constexpr (N == 1) return tang_##OF##_halves_##F(h, w[0]); else return h; }
TANG_RUN(max, bf16)
TANG_RUN(min, bf16)
TANG_RUN(max, f16)
TANG_RUN(min, f16)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TANG_FIRST_OF_TWO(F, W, OF, I, AT) asm("{ .reg .pred p, q; setp.eq." #F "x2 p|q, %1, %2; @q mov.u32 %0, %4; @p mov.u32 %0, %3; }" \
  : "+r"(AT) : "r"(W), "r"((uint32_t)tang_to_##F(OF) * 0x10001u), "r"(I), "r"((I) + 1))
#else
#define TANG_FIRST_OF_TWO(F, W, OF, I, AT) AT = tang_from_##F((uint16_t)(W)) == OF ? (I) : tang_from_##F((uint16_t)((W) >> 16)) == OF ? (I) + 1 : AT
#endif
#define TANG_FIRST(F) template <int N> TANG int tang_first_##F(const uint32_t* w, float of) { \
  int at = 2 * N; \
  if (of == of) for (int i = N - 1; i >= 0; --i) TANG_FIRST_OF_TWO(F, w[i], of, 2 * i, at); \
  else for (int i = 2 * N - 1; i >= 0; --i) { const float x = tang_from_##F((uint16_t)(w[i >> 1] >> 16 * (i & 1))); at = x != x ? i : at; } \
  return at; }
TANG_FIRST(bf16)
TANG_FIRST(f16)
// 2^(2 h) is its square.
TANG float tang_exp2_of_half(float h) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(h)); return y; }
// N neighbours in pieces of up to 16 bytes, of which the nearest cache keeps none.
template <class T, int N> TANG TangRun<T, N> tang_get_once(const T* p) {
  TangRun<T, N> out;
  constexpr int bytes = (int)sizeof(T) * N;
  if constexpr (bytes % 16 == 0) {
#pragma unroll
    for (int k = 0; k < bytes / 16; ++k) {
      uint4& v = ((uint4*)&out)[k];
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(__cvta_generic_to_global((const uint4*)p + k)) : "memory");
    }
  } else {
    out = *(const TangRun<T, N>*)p;
  }
  return out;
}
// N neighbours from p on, which lie in pieces of 16 bytes and one more where p is no multiple of that.
template <int N, class T> TANG TangRun<T, N> tang_get_beside(const T* p) {
  const int b = (int)((uint64_t)p & 15);
  const uint4* const g = (const uint4*)((const unsigned char*)p - b);
  constexpr int pieces = (int)sizeof(T) * N / 16;
  TangRun<T, N> out;
  uint32_t* const to = (uint32_t*)&out;
  uint4 a = g[0], z = a;
  for (int k = 0; k < pieces; ++k) {
    if (b || k + 1 < pieces) z = g[k + 1];
    uint32_t w0 = a.x, w1 = a.y, w2 = a.z, w3 = a.w, w4 = z.x, w5 = z.y, w6 = z.z;
    if (b & 8) w0 = w2, w1 = w3, w2 = w4, w3 = w5, w4 = w6, w5 = z.w;
    if (b & 4) w0 = w1, w1 = w2, w2 = w3, w3 = w4, w4 = w5;
    const int s = 8 * (b & 3);
    to[4 * k] = __funnelshift_r(w0, w1, s), to[4 * k + 1] = __funnelshift_r(w1, w2, s);
    to[4 * k + 2] = __funnelshift_r(w2, w3, s), to[4 * k + 3] = __funnelshift_r(w3, w4, s);
    a = z;
  }
  return out;
}
// In pieces of 16 bytes, where an assignment might be taken apart; `tang_put_past` marks them to leave the caches first.
#define TANG_PUT(NAME, STORE) template <class T, int N> TANG void NAME(T* p, const TangRun<T, N>& w) { \
  if constexpr (sizeof(T) * N % 16 == 0) \
    for (int k = 0; k < (int)(sizeof(T) * N / 16); ++k) STORE((uint4*)p + k, ((const uint4*)&w)[k]); \
  else *(TangRun<T, N>*)p = w; }
TANG_PUT(tang_put, __stwb)
TANG_PUT(tang_put_past, __stcs)
// Integers in the order of the values: no sign of 0, one NaN above all numbers. The other way round, NaN stays above.
TANG int tang_rank_of(float y) { const int u = __float_as_int(y); return u ^ ((u >> 31) & 0x7fffffff); }
TANG int tang_rank(float x) { float y; asm("add.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x)); return tang_rank_of(y); }
TANG int tang_rank_down(float x) { float y; asm("sub.f32 %0, 0f00000000, %1;" : "=f"(y) : "f"(x)); return tang_rank_of(y); }
TANG float tang_of_rank(int s) { return __int_as_float(s ^ ((s >> 31) & 0x7fffffff)); }
TANG int tang_short_key(int rank, int place) { return (rank & (int)0xffff0000u) | place; }
TANG float tang_value_of_short_key(int k) { return tang_of_rank((k & (int)0xffff0000u) | ((k >> 31) & 0xffff)); }
TANG int64_t tang_place_of_short_key(int k) { return k & 0xffff ? 65535 - (k & 0xffff) : INT64_MAX; }
TANG int64_t tang_key(int rank, int place) { return (int64_t)((uint64_t)(uint32_t)rank << 32 | (uint32_t)place); }
TANG float tang_value_of_key(int64_t k) { return tang_of_rank((int)(k >> 32)); }
TANG int64_t tang_place_of_key(int64_t k) { return (int)k ? INT32_MAX - (int)k : INT64_MAX; }
// c += a b^T for 16 rows of a, 8 of b and 32 terms: four lanes share a row, each has a run of 8 of its terms. Which of them
// meet in one instruction is the same on both sides.
#define TANG_MULTIPLY(F) TANG void tang_multiply_##F(float (&c)[4], const uint4& a, const uint4& b, const uint4& w) { \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." #F "." #F ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(b.x), "r"(a.y), "r"(b.y), "r"(w.x), "r"(w.y)); \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." #F "." #F ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.z), "r"(b.z), "r"(a.w), "r"(b.w), "r"(w.z), "r"(w.w)); }
TANG_MULTIPLY(f16)
TANG_MULTIPLY(bf16)
// What was started before is complete and what it wrote is seen; what is started after may begin, and waits here.
TANG void tang_follow() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}
TANG void tang_cluster_arrives() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
TANG void tang_cluster_waits() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
TANG void tang_meet_cluster() { tang_cluster_arrives(); tang_cluster_waits(); }
// The same place in the shared memory of workgroup `rank` of the cluster.
template <class T> TANG T* tang_peer(T* p, int rank) {
  T* q; asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(rank)); return q;
}
)";

class CudaDialect : public GpuDialect {
public:
  CudaDialect() {
    counter = "int";
    barrier = "__syncthreads();";
    unroll = "#pragma unroll";
    exchanges = true, halves = true, powers_of_halves = true, passes_near_cache = true;
    unaliased = "__restrict__ ";
    barrier_of_cluster = "tang_meet_cluster();";
    cluster_arrives = "tang_cluster_arrives();", cluster_started = "tang_cluster_waits();";
    lane = "threadIdx.x", group = "blockIdx.x", launched = "gridDim.x";
  }

  std::string prelude() const override { return cuda_prelude(); }

  std::string head(const kernel::Kernel& k) const override {
    const int lanes = k.lanes / k.cluster;
    // Workgroups of a small grid are all under way at once: told so, the compiler keeps all that a lane loads in registers
    // instead of room for more of them.
    const int64_t room = k.cluster > 1 ? room_of_clusters(k, lanes) : kernel::workgroups_of_a_worker(lanes, kernel::workgroups(k));
    std::string bounds = k.cluster > 1 ? "__cluster_dims__(" + std::to_string(k.cluster) + ", 1, 1) " : "";
    bounds += "__launch_bounds__(" + std::to_string(lanes) + (room ? ", " + std::to_string(room) : "") + ") ";
    return "extern \"C\" __global__ void " + bounds + k.name + "(" +
           arguments(k, "") + ")";
  }

  // Workgroups a processor: no more than all clusters need to be under way at once.
  static int64_t room_of_clusters(const kernel::Kernel& k, int lanes) {
    const int64_t most = std::max(1, (stores_rows(k) ? resident_lanes : resident_lanes_unstored) / lanes);
    int64_t room = 1;
    while (room < most && parts * (part_processors * room / k.cluster) < kernel::workgroups(k)) ++room;
    return room;
  }

  std::string tiles(const kernel::Kernel& k) const override {
    const std::string out = tile_pointers(k, "");
    return "  tang_follow();\n" + row_registers(k, *this) + (out.empty() ? out : "  extern __shared__ __align__(16) unsigned char shared[];\n" + out);
  }

  void rows(Unit& u, const kernel::Stmt& s) const override { print_rows(u, *this, s); }
};
}  // namespace

const GpuDialect& cuda_dialect() {
  static const CudaDialect d;
  return d;
}

std::string cuda(const kernel::Kernel& k) { return gpu(k, cuda_dialect()); }

std::string cuda_unit(const std::vector<const kernel::Kernel*>& kernels) { return gpu_unit(kernels, cuda_dialect()); }

int64_t cuda_shared_bytes(const kernel::Kernel& k) { return shared_bytes(k); }

int cuda_lanes(const kernel::Kernel& k) { return k.lanes / k.cluster; }

int64_t cuda_blocks(const kernel::Kernel& k) { return launched_groups(k, cuda_dialect()); }

std::string cuda_prelude() {
  Spelling s = c_like_spelling();
  s.words["D_SQRT"] = "__dsqrt_rn", s.words["D_FMA"] = "__fma_rn";
  return cuda_head + std::string(scalar_macros) + spelled(order_text, s) + spelled(integer_text, s) + spelled(wide_text, s) + spelled(narrow_text, s) + cuda_tail;
}

}  // namespace tang::emit
