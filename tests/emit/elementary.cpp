// The elementary functions against the C library in f64: worst error in ulp of f32, edge cases, lanes equal
// to scalars.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "machine.hpp"

using namespace samples;

namespace {
constexpr int64_t count = 1 << 20;

// y[i] = f(x[i], z[i]), scalar and in lanes.
Kernel function_kernel(const std::string& name, const std::function<E(E, E)>& f, int vector) {
  Kernel k;
  k.name = name;
  const int x = global(k, "x", {count}, Access::read), z = global(k, "z", {count}, Access::read),
            y = global(k, "y", {count}, Access::write);
  const Var i = k.fresh("i");
  Stmt s = apply({{i, count}}, ref(y, {v(i)}), {ref(x, {v(i)}), ref(z, {v(i)})}, f(arg(k, 0), arg(k, 1)));
  std::get<Apply>(s.node).vector = vector;
  k.body = {s};
  return k;
}

float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(want) || std::fabs(want) > 3.4028235677973366e38)
    return std::isinf(got) && std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  if (std::isnan(got) || std::isinf(got)) return 1e9;
  const int e = want == 0 ? -149 : std::max(std::ilogb(want) - 23, -149);
  return std::fabs(double(got) - want) / std::ldexp(1.0, e);
}

struct Case {
  std::string name;
  std::function<E(E, E)> term;
  std::function<double(double, double)> want;
  std::function<double(std::minstd_rand&)> draw;
  double bound;
};

double uniform(std::minstd_rand& r, double lo, double hi) {
  return lo + (hi - lo) * double(r()) / double(r.max());
}

// The instructions of AVX-512 that the text of 16 lanes names, lane by lane, for machines that have none.
const char* const as_avx512 = R"(#define __AVX512F__ 1
typedef float F16 __attribute__((vector_size(64)));
typedef int I16 __attribute__((vector_size(64)));
typedef double D8 __attribute__((vector_size(64)));
#define EACH(type, n, value) { type r; for (int l = 0; l < n; ++l) r[l] = value; return r; }
static F16 as_scale(F16 p, F16 n, F16 s, int m, int r_)
  EACH(F16, 16, (float)(n[l] != n[l] ? n[l] : p[l] * __builtin_ldexp(1, (int)__builtin_floorf(n[l]))))
static F16 as_permute(F16 t, I16 i, F16 s, int m) EACH(F16, 16, t[i[l] & 15])
static F16 as_fma(F16 a, F16 b, F16 c, int m, int r_) EACH(F16, 16, __builtin_fmaf(a[l], b[l], c[l]))
static D8 as_dfma(D8 a, D8 b, D8 c, int m, int r_) EACH(D8, 8, __builtin_fma(a[l], b[l], c[l]))
static void as_store(float* p, F16 v) { *(F16*)p = v; }
#define __builtin_ia32_scalefps512_mask as_scale
#define __builtin_ia32_permvarsf512_mask as_permute
#define __builtin_ia32_vfmaddps512_mask as_fma
#define __builtin_ia32_vfmaddpd512_mask as_dfma
#define __builtin_ia32_movntps512 as_store
)";

double any_bits(std::minstd_rand& r) { return double(float_of(uint32_t(r()) ^ uint32_t(r()) << 11)); }
} // namespace

TEST(elementary, worst_errors_and_edges) {
  std::vector<Case> cases = {
      {"exp2", [](E a, E) { return expr::exp2(a); }, [](double a, double) { return std::exp2(a); },
       [](auto& r) { return uniform(r, -152, 130); }, 2},
      {"log2", [](E a, E) { return expr::log2(a); }, [](double a, double) { return std::log2(a); },
       [](auto& r) { return std::fabs(any_bits(r)); }, 2},
      {"log2 near 1", [](E a, E) { return expr::log2(a); }, [](double a, double) { return std::log2(a); },
       [](auto& r) { return uniform(r, 0.5, 2); }, 2},
      {"sin", [](E a, E) { return expr::sin(a); }, [](double a, double) { return std::sin(a); },
       [](auto& r) { return uniform(r, -1000, 1000); }, 2},
      {"sin of anything", [](E a, E) { return expr::sin(a); }, [](double a, double) { return std::sin(a); },
       any_bits, 2},
      {"atan2", [](E a, E b) { return expr::atan2(a, b); },
       [](double a, double b) { return std::atan2(a, b); }, [](auto& r) { return uniform(r, -4, 4); }, 2},
      {"atan2 of anything", [](E a, E b) { return expr::atan2(a, b); },
       [](double a, double b) { return std::atan2(a, b); }, any_bits, 2},
      {"sqrt", [](E a, E) { return expr::sqrt(a); }, [](double a, double) { return std::sqrt(a); }, any_bits,
       0.5},
      {"recip", [](E a, E) { return expr::recip(a); }, [](double a, double) { return 1 / a; }, any_bits, 0.5},
      {"floor", [](E a, E) { return expr::floor(a); }, [](double a, double) { return std::floor(a); },
       any_bits, 0},
      {"max", [](E a, E b) { return expr::max(a, b); }, expr::max_real, any_bits, 0},
      {"min", [](E a, E b) { return expr::min(a, b); }, expr::min_real, any_bits, 0},
      {"ratio", [](E a, E b) { return expr::ratio(a, b); },
       [](double a, double b) { return b == 0 ? 0 : a / b; }, [](auto& r) { return uniform(r, -9, 9); }, 0.5},
      {"exact quotient", [](E a, E b) { return a * expr::recip(b); },
       [](double a, double b) { return a / b; }, [](auto& r) { return uniform(r, -9, 9); }, 0.5},
  };
  std::vector<Kernel> kernels;
  for (size_t c = 0; c < cases.size(); ++c)
    for (int vector : {-1, 0})
      kernels.push_back(
          function_kernel("f" + std::to_string(c) + (vector ? "s" : "v"), cases[c].term, vector));
  std::vector<Kernel*> all;
  for (auto& k : kernels) all.push_back(&k);
  auto gcc = machine::build(all), clang = machine::build(all, {}, "clang");
  emit::COptions narrow;
  narrow.lanes = 8;
  auto eight = machine::build(all, narrow);
  auto sixteen = machine::compiler("gcc").compile(as_avx512 + emit::c_unit({all.begin(), all.end()}, {}));
  const float inf = std::numeric_limits<float>::infinity(), nan = float_of(0x7fc12345), tiny = float_of(1);
  const std::vector<float> edges = {0.0f,
                                    -0.0f,
                                    1,
                                    -1,
                                    inf,
                                    -inf,
                                    nan,
                                    tiny,
                                    -tiny,
                                    0x1p-126f,
                                    -0x1p-126f,
                                    0x1.fffffep127f,
                                    -0x1.fffffep127f,
                                    0x1p23f,
                                    -0x1p23f,
                                    0x1p24f,
                                    0.5f,
                                    -0.5f,
                                    1.5f,
                                    -1.5f,
                                    -126,
                                    -127,
                                    -125.5f,
                                    127.99999f,
                                    128,
                                    1e30f,
                                    32768,
                                    32769,
                                    3.14159274f,
                                    0x1p-12f,
                                    0x1p-13f,
                                    2.5f,
                                    22,
                                    710};
  for (size_t c = 0; c < cases.size(); ++c) {
    std::minstd_rand r(unsigned(c) + 1);
    std::vector<float> x(count), z(count);
    size_t at = 0;
    for (float a : edges)
      for (float b : edges) x[at] = a, z[at++] = b;
    for (; at < size_t(count); ++at) x[at] = float(cases[c].draw(r)), z[at] = float(cases[c].draw(r));
    std::vector<std::vector<float>> y;
    for (auto* lib : {gcc.get(), clang.get(), eight.get(), sixteen.get()})
      for (int v : {0, 1}) {
        y.emplace_back(size_t(count), 7.0f);
        void* args[] = {x.data(), z.data(), y.back().data()};
        lib->function<device::KernelFunction>(kernels[2 * c + size_t(v)].name)(args, 0, 1, nullptr);
      }
    double worst = 0;
    size_t where = 0, different = 0;
    for (size_t i = 0; i < size_t(count); ++i) {
      const double e = ulps(y[0][i], cases[c].want(x[i], z[i]));
      if (e > worst) worst = e, where = i;
      for (auto& o : y)
        different += std::memcmp(&o[i], &y[0][i], 4) && !(std::isnan(o[i]) && std::isnan(y[0][i]));
    }
    std::printf("  %-18s worst %.3f ulp at (%a, %a)\n", cases[c].name.c_str(), worst, double(x[where]),
                double(z[where]));
    EXPECT_LE(worst, cases[c].bound) << cases[c].name << " at " << x[where] << ", " << z[where] << ": "
                                     << y[0][where];
    EXPECT_EQ(different, 0u) << cases[c].name << ": lanes, compilers and widths agree bit for bit";
  }
}
