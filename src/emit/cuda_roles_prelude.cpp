#include "tang/emit/cuda_roles_prelude.hpp"

namespace tang::emit {

namespace {
// Barriers count bytes and arrivals; a copy's writes are seen by whoever waited for its barrier.
const char* const roles_head = R"(struct __align__(64) TangMap { uint64_t words[16]; };
TANG void tang_two_f32(float* to, const float* p) { const float2 v = *(const float2*)p; to[0] = v.x, to[1] = v.y; }
TANG void tang_both_bf16(float* to, uint32_t v) { to[0] = __uint_as_float(v << 16), to[1] = __uint_as_float(v & 0xffff0000u); }
TANG void tang_both_f16(float* to, uint32_t v) { to[0] = tang_from_f16(v & 0xffffu), to[1] = tang_from_f16(v >> 16); }
template <int N> TANG float tang_half_bf16(const uint32_t (&x)[N], int e) { return __uint_as_float(e & 1 ? x[e >> 1] & 0xffff0000u : x[e >> 1] << 16); }
template <int N> TANG float tang_half_f16(const uint32_t (&x)[N], int e) { return tang_from_f16(e & 1 ? x[e >> 1] >> 16 : x[e >> 1] & 0xffffu); }
TANG void tang_two_bf16(float* to, const uint16_t* p) { tang_both_bf16(to, *(const uint32_t*)p); }
TANG void tang_two_f16(float* to, const uint16_t* p) { tang_both_f16(to, *(const uint32_t*)p); }
TANG void tang_quad(uint32_t (&to)[4], const uint16_t* p) {
  const uint4 v = *(const uint4*)p;
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
// Word k of lane j of four neighbours becomes word j of lane k.
TANG void tang_share_quad(uint32_t (&w)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
  const uint32_t a = __shfl_xor_sync(0xffffffffu, odd ? w[0] : w[1], 1), b = __shfl_xor_sync(0xffffffffu, odd ? w[2] : w[3], 1);
  w[0] = odd ? a : w[0], w[1] = odd ? w[1] : a, w[2] = odd ? b : w[2], w[3] = odd ? w[3] : b;
  const uint32_t c = __shfl_xor_sync(0xffffffffu, high ? w[0] : w[2], 2), d = __shfl_xor_sync(0xffffffffu, high ? w[1] : w[3], 2);
  w[0] = high ? c : w[0], w[2] = high ? w[2] : c, w[1] = high ? d : w[1], w[3] = high ? w[3] : d;
}
TANG uint32_t tang_shared(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
TANG void tang_bar_init(uint32_t b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(b), "r"(n)); }
TANG void tang_bar_expect(uint32_t b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(b), "r"(bytes) : "memory");
}
TANG void tang_bar_arrive(uint32_t b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(b) : "memory"); }
TANG void tang_bar_wait(uint32_t b, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
               "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(b), "r"(parity) : "memory");
}
// The same place in the shared memory of workgroup `rank` of the cluster, its barriers and words.
TANG uint32_t tang_at(uint32_t place, int rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(place), "r"(rank));
  return r;
}
// Of the cluster's scope, which takes hundreds of cycles, only where values were stored that others read.
TANG void tang_bar_arrive_at(uint32_t b, int rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(tang_at(b, rank)) : "memory");
}
TANG void tang_bar_publish_at(uint32_t b, int rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(tang_at(b, rank)) : "memory");
}
TANG void tang_bar_wait_cluster(uint32_t b, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
               "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(b), "r"(parity) : "memory");
}
TANG void tang_store_quad(uint32_t to, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
TANG void tang_peer_quad(float (&v)[4], uint32_t from, bool some) { // v stays where not
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\n@p ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
               : "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3]) : "r"(from), "r"((int)some) : "memory");
}
TANG void tang_bulk_load(uint32_t to, const TangMap* m, uint32_t b, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               :: "r"(to), "l"(m), "r"(b), "r"(c0), "r"(c1) : "memory");
}
TANG void tang_bulk_load(uint32_t to, const TangMap* m, uint32_t b, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               :: "r"(to), "l"(m), "r"(b), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
TANG void tang_bulk_load(uint32_t to, const TangMap* m, uint32_t b, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               :: "r"(to), "l"(m), "r"(b), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
TANG void tang_bulk_load(uint32_t to, const TangMap* m, uint32_t b, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
               :: "r"(to), "l"(m), "r"(b), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
TANG void tang_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
)";

const char* const roles_tail = R"(template <int N> TANG void tang_bulk_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
TANG void tang_bulk_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
TANG void tang_fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TANG void tang_prefetch_map(const TangMap* m) { asm volatile("prefetch.tensormap [%0];" :: "l"(m) : "memory"); }
TANG void tang_team_sync(int id, int n) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(n) : "memory"); }
TANG void tang_team_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(n) : "memory"); }
TANG void tang_mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TANG void tang_mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> TANG void tang_mma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
template <int N> TANG void tang_pin(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]) :: "memory");
}
template <int N> TANG void tang_pin(uint32_t (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(x[i]) :: "memory");
}
template <int N> TANG void tang_pin(int (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(x[i]) :: "memory");
}
// Sums of integers: their first values, and what they become.
template <int N> TANG void tang_start(int (&to)[N], const float (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = (int)from[i];
}
template <int N> TANG void tang_whole(float (&to)[N], const int (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = (float)from[i];
}
// Matrix descriptor: start and leading offset in 16 bytes in the low word; stride offset 1024 bytes and the 128-byte swizzle
// in the high one.
TANG uint64_t tang_window(uint32_t low) { return (uint64_t)0x40000040u << 32 | low; }
TANG uint32_t tang_pack_bf16(float a, float b) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
TANG uint32_t tang_pack_f16(float a, float b) {
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
TANG void tang_store_matrix(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  const uint32_t words[4] = {a, b, c, d};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t line = __shfl_sync(0xffffffffu, to, (int)(threadIdx.x & 31) / 4 + 8 * i);
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(line + (threadIdx.x & 3) * 4), "r"(words[i]) : "memory");
  }
#else
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
#endif
}
TANG void tang_put_word(uint32_t to, int v) { asm volatile("st.shared.s32 [%0], %1;" :: "r"(to), "r"(v) : "memory"); }
TANG int tang_get_word(uint32_t from) {
  int v;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
  return v;
}
// A value that the compiler takes for new here: what is made of it stays here.
TANG float tang_fresh(float x) { asm volatile("" : "+f"(x)); return x; }
TANG void tang_store_pair(uint32_t to, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(to), "f"(a), "f"(b) : "memory");
}
TANG float tang_fast_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// 2^n 2^r with n whole and |r| <= 1/2: 2^r to 2^-21 (minimax, relative). From 2^127.5 on it is infinite, below
// 2^-126.5 it is 0.
TANG float tang_fma_exp2(float x) {
  float y;
  asm("{\n.reg .f32 t;\nmin.NaN.f32 t, %1, 0f43000000;\nmax.NaN.f32 %0, t, 0fC2FE0000;\n}" : "=f"(y) : "f"(x));
  const float t = y + 12582912.f, r = y - (t - 12582912.f);
  float p = __fmaf_rn(0.00111255073f, r, 0.00966628268f);
  p = __fmaf_rn(p, r, 0.0555740036f), p = __fmaf_rn(p, r, 0.240223512f), p = __fmaf_rn(p, r, 0.693142831f);
  p = __fmaf_rn(p, r, 1.f);
  return p * __uint_as_float((__float_as_uint(t) << 23) + 0x3f800000u);
}
template <int N> TANG float tang_some_exp2(int e, float x) { return (e & 7) < N ? tang_fma_exp2(x) : tang_fast_exp2(x); }
TANG float tang_fast_recip(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TANG float tang_nan_max(float a, float b) { float y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
TANG float tang_nan_min(float a, float b) { float y; asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
)";

std::string list(int from, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += (i ? ", %" : "%") + std::to_string(from + i);
  return out;
}
} // namespace

namespace {
// A box of shared memory to its place in a global.
std::string to_global(const std::string& name, int dimensions) {
  std::string args, at;
  for (int d = 0; d < dimensions; ++d)
    args += ", int c" + std::to_string(d), at += ", \"r\"(c" + std::to_string(d) + ")";
  return "TANG void " + name + "(const TangMap* m, uint32_t from" + args +
         ") {\n  asm volatile(\"cp.async.bulk.tensor." + std::to_string(dimensions) +
         "d.global.shared::cta.bulk_group [%0, {" + list(2, dimensions) +
         "}], [%1];\" :: \"l\"(m), \"r\"(from)" + at + " : \"memory\");\n  tang_bulk_commit();\n}\n";
}
// A box of a global to the same place in the shared memory of all workgroups that `mask` names; each one's barrier
// counts its bytes.
std::string to_cluster(int dimensions) {
  std::string args, at;
  for (int d = 0; d < dimensions; ++d)
    args += ", int c" + std::to_string(d), at += ", \"r\"(c" + std::to_string(d) + ")";
  const std::string n = std::to_string(dimensions);
  return "TANG void tang_bulk_share(uint16_t mask, uint32_t to, const TangMap* m, uint32_t b" + args +
         ") {\n  asm volatile(\"cp.async.bulk.tensor." + n +
         "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" + list(4, dimensions) +
         "}], [%2], %3;\" :: \"r\"(to), \"l\"(m), \"r\"(b), \"h\"(mask)" + at + " : \"memory\");\n}\n";
}
} // namespace

std::string cuda_roles_prelude() {
  std::string out = roles_head;
  for (int d = 2; d <= 5; ++d) out += to_cluster(d) + to_global("tang_bulk_store", d);
  out += "TANG void tang_add1(float* to, const float* x) { atomicAdd(to, x[0]); }\n";
  for (int n : {2, 4}) {
    std::string values;
    for (int i = 0; i < n; ++i) values += ", \"f\"(x[" + std::to_string(i) + "])";
    out += "TANG void tang_add" + std::to_string(n) + "(float* to, const float* x) {\n" +
           "  asm volatile(\"red.relaxed.gpu.global.add.v" + std::to_string(n) + ".f32 [%0], {" + list(1, n) +
           "};\" :: \"l\"(to)" + values + " : \"memory\");\n}\n";
  }
  return out + roles_tail;
}

std::string name(const MatrixInstruction& m) {
  return "tang_mma_" + std::string(expr::row(m.format).name) + "_" + std::to_string(m.n) +
         (m.a_in_registers ? "_r"
          : m.a_k_major    ? "_k"
                           : "_m") +
         (m.b_k_major ? "k" : "n");
}

// Add = 0 overwrites d.
std::string text(const MatrixInstruction& m) {
  const int d = m.n / 2, b = d + (m.a_in_registers ? 4 : 1), bits = expr::row(m.format).bits;
  const bool whole = expr::type_of(m.format) == expr::Type::index;
  const std::string f = expr::row(m.format).name, type = bits == 32 ? "tf32" : whole ? "s8" : f;
  std::string majors = bits == 16 ? (m.a_in_registers ? "" : m.a_k_major ? ", 0" : ", 1") : "";
  if (bits == 16) majors += m.b_k_major ? ", 0" : ", 1";
  std::string outs;
  const std::string held = whole ? "\"+r\"(d[" : "\"+f\"(d[";
  for (int i = 0; i < d; ++i) outs += (i ? ", " : "") + held + std::to_string(i) + "])";
  const std::string a = m.a_in_registers ? "{" + list(d, 4) + "}" : "%" + std::to_string(d);
  const std::string ins =
      m.a_in_registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)";
  return "template <int Add> TANG void " + name(m) + (whole ? "(int" : "(float") + " (&d)[" +
         std::to_string(d) + "], " + (m.a_in_registers ? "const uint32_t* a" : "uint64_t a") +
         ", uint64_t b) {\n  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %" + std::to_string(b + 1) +
         ", 0;\\n\"\n    \"wgmma.mma_async.sync.aligned.m64n" + std::to_string(m.n) + "k" +
         std::to_string(256 / bits) + (whole ? ".s32." : ".f32.") + type + "." + type + " {" + list(0, d) +
         "}, " + a + ", %" + std::to_string(b) + (whole ? ", p" : ", p, 1, 1") + majors +
         ";\\n}\"\n    : " + outs + " : " + ins + ", \"l\"(b), \"n\"(Add));\n}\n";
}

} // namespace tang::emit
