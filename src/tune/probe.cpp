// The probes: C texts of their own, run on the thread pool. Best and median of repeats.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "tang/tune/machine.hpp"

namespace tang::tune {

namespace {
// args: [0] one region a workgroup, [1] two integers: elements of a region, passes.
constexpr const char* text = R"(
typedef float V __attribute__((vector_size(4 * LANES), aligned(4)));
#define KERNEL(name) void name(void* const* args, long first, long last, void* scratch)
#define EACH(w) for (long w = first; w < last; ++w)
#define REGION(w) ((float*)args[0] + (w) * ((long*)args[1])[0])
#define ELEMENTS (((long*)args[1])[0])
#define PASSES (((long*)args[1])[1])
#define BARRIER __asm__ volatile("" ::: "memory")
#define TWELVE(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11)
#define EIGHT(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)
KERNEL(probe_empty) { BARRIER; }
KERNEL(probe_fma) {
  EACH(w) {
    V x = {0}, y = {0};
    x += 1.0f + (float)w * 0x1p-20f, y += 0x1p-30f;
#define START(k) V a##k = x * (float)(k + 1);
    TWELVE(START)
    for (long n = 0; n < PASSES; ++n) {
#define STEP(k) a##k = a##k * x + y;
      TWELVE(STEP)
      __asm__ volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5));
      __asm__ volatile("" : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11));
    }
#define JOIN(k) total += a##k;
    V total = {0};
    TWELVE(JOIN)
    *(V*)REGION(w) = total;
  }
}
KERNEL(probe_chain) { // each multiply-add needs the result of the one before it
  EACH(w) {
    V x = {0}, y = {0}, a = {0};
    x += 1.0f + (float)w * 0x1p-20f, y += 0x1p-30f;
    for (long n = 0; n < PASSES; ++n) {
#define AFTER(k) a = a * x + y;
      TWELVE(AFTER)
      __asm__ volatile("" : "+v"(a));
    }
    *(V*)REGION(w) = a;
  }
}
KERNEL(probe_read) {
  EACH(w) {
    const float* p = REGION(w);
#define ZERO(k) V s##k = {0};
    EIGHT(ZERO)
    for (long n = 0; n < PASSES; ++n) {
      BARRIER;
#define READ(k) s##k += *(const V*)(p + i + k * LANES);
      for (long i = 0; i < ELEMENTS; i += 8 * LANES) { EIGHT(READ) }
    }
#define ADD(k) sum += s##k;
    V sum = {0};
    EIGHT(ADD)
    float total = 0;
    for (int k = 0; k < LANES; ++k) total += sum[k];
    if (total == 0.125f) *(float*)p = total;
  }
}
KERNEL(probe_write) {
  EACH(w) {
    float* p = REGION(w);
    V one = {0};
    one += 1.0f;
    for (long n = 0; n < PASSES; ++n) {
      BARRIER;
      for (long i = 0; i < ELEMENTS; i += LANES) __builtin_memcpy(p + i, &one, sizeof one);
    }
  }
}
KERNEL(probe_exp) {
  typedef int I __attribute__((vector_size(4 * LANES)));
  EACH(w) {
    float* p = REGION(w);
    for (long n = 0; n < PASSES; ++n) {
      BARRIER;
      for (long i = 0; i < ELEMENTS; i += LANES) {
        V x = *(V*)(p + i) * 1.44269504f, magic = x + 12582912.0f, f = x - (magic - 12582912.0f);
        V r = f * 0.00015353362f + 0.0013398874f;
        r = r * f + 0.009618437f, r = r * f + 0.055503324f, r = r * f + 0.24022648f, r = r * f + 0.69314718f;
        r = r * f + 1.0f;
        I bits = ((I)magic << 23) + (I)r;
        *(V*)(p + i) = (V)bits * 0.5f;
      }
    }
  }
}
)";

using device::Cpu;
using device::KernelFunction;

struct Probes {
  device::Cpu& cpu;
  std::shared_ptr<device::Library> library;

  // Rates of a kernel that does `work(passes)` units of work: passes grow until a run takes long enough.
  Rate rate(const char* name, float* region, int64_t elements, double work_a_pass, double seconds = 2e-3,
            int repeats = 9) {
    const auto f = library->function<KernelFunction>(name);
    check(f, std::string("the probes lack ") + name);
    int64_t how[2] = {elements, 1};
    void* args[2] = {region, how};
    auto run = [&] {
      const double from = Cpu::seconds();
      cpu.launch(f, args, cpu.workers(), 0);
      return Cpu::seconds() - from;
    };
    double t = run();
    while (t < seconds / 2 && how[1] < int64_t(1) << 40) {
      how[1] *= 2;
      t = run();
    }
    std::vector<double> all;
    for (int k = 0; k < repeats; ++k) all.push_back(run());
    std::sort(all.begin(), all.end());
    const double work = work_a_pass * double(how[1]) * cpu.workers();
    return {work / all.front(), work / all[all.size() / 2]};
  }

  double launches(int64_t workgroups) {
    const auto f = library->function<KernelFunction>("probe_empty");
    int64_t how[2] = {0, 0};
    void* args[2] = {how, how};
    std::vector<double> all;
    for (int k = 0; k < 15; ++k) {
      const double from = Cpu::seconds();
      for (int n = 0; n < 100; ++n) cpu.launch(f, args, workgroups, 0);
      all.push_back((Cpu::seconds() - from) / 100);
    }
    std::nth_element(all.begin(), all.begin() + 7, all.end());
    return all[7];
  }
};

// Bytes of a cache of the first core, as the system tells it.
int64_t capacity(int index, int name, int64_t otherwise) {
  std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  int64_t bytes = 0;
  char unit = 0;
  if (in >> bytes >> unit && bytes > 0) return bytes << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
  const long v = sysconf(name);
  return v > 0 ? v : otherwise;
}
} // namespace

Machine probe(device::Compiler& compiler, device::Cpu& cpu, int lanes) {
  Machine m;
  m.workers = cpu.workers();
  m.lanes = lanes;
  m.date = today();
  m.compiler = compiler.path();
  m.device =
      device::digest(compiler.identity()).substr(0, 16) + ", " + std::to_string(m.workers) + " workers";
  Probes b{cpu, compiler.compile("#define LANES " + std::to_string(lanes) +
                                 "\n#pragma GCC optimize(\"fp-contract=fast\")\n" + text)};
  const int64_t w = m.workers, near = capacity(0, _SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                middle = capacity(2, _SC_LEVEL2_CACHE_SIZE, 512 << 10),
                far = capacity(3, _SC_LEVEL3_CACHE_SIZE, 8 << 20);
  const int64_t most = std::max<int64_t>(int64_t(64) << 20, std::min<int64_t>(3 * far, int64_t(256) << 20));
  const device::Buffer region = cpu.allocate(size_t(most + 4096 * w));
  auto* p = region.as<float>();
  const int64_t step = 8 * lanes; // elements that the read probe takes at once
  auto elements = [&](int64_t bytes) { return std::max<int64_t>(step, bytes / 4 / step * step); };
  m.fma = b.rate("probe_fma", p, step, 12.0 * lanes * 2);
  m.chain = double(w) / b.rate("probe_chain", p, step, 12.0).typical;
  m.exp = b.rate("probe_exp", p, elements(near / 2), double(elements(near / 2)));
  auto level = [&](const char* name, int64_t bytes, int64_t each, double seconds, int repeats) {
    const int64_t n = elements(each);
    m.levels.push_back({name, bytes, b.rate("probe_read", p, n, 4.0 * double(n), seconds, repeats)});
  };
  level("L1", near * w, near / 2, 1e-3, 15);
  level("L2", middle * w, middle / 2, 2e-3, 9);
  level("L3", far, std::min(far / 3 / w, most / w), 4e-3, 9);
  level("memory", 0, most / w, 1e-3, 5);
  m.write = b.rate("probe_write", p, elements(most / w), 4.0 * double(elements(most / w)), 1e-3, 3);
  m.call = b.launches(1);
  m.launch = w > 1 ? b.launches(w) : m.call;
  m.workgroup = std::max(0.0, (b.launches(64 * w) - m.launch) / (63.0 * double(w)));
  return m;
}

} // namespace tang::tune
