// The probes of an NVIDIA GPU: CUDA texts of their own, none of them a kernel that the model predicts.
#include <algorithm>
#include <fstream>

#include "tang/emit/cuda_roles_prelude.hpp"
#include "tang/tune/machine.hpp"

namespace tang::tune {

namespace {
// `n`: 16-byte words in all, or steps. A sum that is never that value keeps every load alive.
constexpr const char* gpu_text = R"(
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define TANG static __device__ __forceinline__
#define KEEP(total) if (total == 0x7fffffffu) *(unsigned*)out = total;
#define KERNEL extern "C" __global__ void
KERNEL probe_empty(int* out) {}
KERNEL probe_early(int* out) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
KERNEL probe_touch(const char* p, int* out) {
  out[threadIdx.x & 15] = __ldcg((const int*)(p + blockIdx.x * 2048L) + (threadIdx.x & 31)) ^ 1;
}
KERNEL probe_fill(uint4* out, long n) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long)blockDim.x) {
    unsigned x = (unsigned)i * 2654435761u;
    out[i] = make_uint4(x & 0x3fff3fffu, (x >> 3) & 0x3fff3fffu, (x >> 5) & 0x3fff3fffu, (x >> 7) & 0x3fff3fffu);
  }
}
// Each lane asks for U words, adds them, and asks again: U * 16 bytes a lane are on their way.
#define READ(U, NAME, LOAD)                                                                          \
  KERNEL NAME(const uint4* p, long n, int passes, int* out) {                                        \
    unsigned total = 0;                                                                              \
    const long step = gridDim.x * (long)blockDim.x;                                                  \
    for (int k = 0; k < passes; ++k)                                                                 \
      for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i + (U - 1) * step < n; i += U * step) { \
        uint4 x[U];                                                                                  \
        _Pragma("unroll") for (int u = 0; u < U; ++u) x[u] = LOAD(p + i + u * step);                 \
        _Pragma("unroll") for (int u = 0; u < U; ++u) total += x[u].x ^ x[u].y ^ x[u].z ^ x[u].w;    \
      }                                                                                              \
    KEEP(total)                                                                                      \
  }
READ(1, probe_read1, __ldcg)
READ(4, probe_read4, __ldcg)
READ(8, probe_read8, __ldcg)
// A workgroup's own bytes, again and again, in its first level.
KERNEL probe_near(const uint4* p, long n, int passes, int* out) {
  unsigned total = 0;
  p += blockIdx.x * n;
  for (int k = 0; k < passes; ++k)
    for (long i = threadIdx.x; i + 3 * blockDim.x < n; i += 4 * blockDim.x) {
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        uint4 x;
        asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p + i + u * blockDim.x));
        total += x.x ^ x.y ^ x.z ^ x.w;
      }
    }
  KEEP(total)
}
// A ring of lines 2048 bytes apart, in an order that no prefetcher guesses; `nodes` a power of two.
KERNEL probe_ring(char* p, int nodes) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < nodes; i += gridDim.x * blockDim.x)
    *(int*)(p + i * 2048L) = (int)((i * 1664525u + 1013904223u) & (unsigned)(nodes - 1));
}
KERNEL probe_chase(const char* p, int from, int steps, int* out) {
  int at = from;
  for (int k = 0; k < steps; ++k) at = __ldcg((const int*)(p + at * 2048L));
  *out = at;
}
KERNEL probe_fma(float* out, long n) {
  float x = threadIdx.x * 0x1p-20f + 1.0f, y = 0x1p-30f, a[16], total = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) a[k] = x * k;
  for (long i = 0; i < n; ++i)
#pragma unroll
    for (int k = 0; k < 16; ++k) a[k] = __fmaf_rn(a[k], x, y);
#pragma unroll
  for (int k = 0; k < 16; ++k) total += a[k];
  if (total == 0.125f) *out = total;
}
KERNEL probe_exp(float* out, long n) {
  float a[8], total = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) a[k] = -0.01f * (threadIdx.x + k);
  for (long i = 0; i < n; ++i)
#pragma unroll
    for (int k = 0; k < 8; ++k) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a[k]));
#pragma unroll
  for (int k = 0; k < 8; ++k) total += a[k];
  if (total == 0.125f) *out = total;
}
KERNEL probe_write(uint4* out, long n) {
  const uint4 one = make_uint4(1, 1, 1, 1);
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long)blockDim.x)
    out[i] = one;
}
)";

// Two warpgroups a workgroup, each with one product of 64 x 256 x 16 after the other; operands of shared
// memory that is zero, or whatever `p` holds.
constexpr const char* matrix_text = R"(
KERNEL probe_matrix(const uint4* p, int* out, long n) {
  extern __shared__ __align__(1024) unsigned char tile[];
  for (int i = threadIdx.x; i < 49152 / 16; i += blockDim.x) ((uint4*)tile)[i] = p ? p[i] : make_uint4(0, 0, 0, 0);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[128];
#pragma unroll
  for (int k = 0; k < 128; ++k) d[k] = 0;
  const uint32_t start = (uint32_t)__cvta_generic_to_shared(tile);
  const uint64_t high = (uint64_t)0x40000040u << 32;
  const uint64_t a = high | ((start + (threadIdx.x / 128) * 8192) >> 4), b = high | ((start + 16384) >> 4);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (long i = 0; i < n; ++i) {
    MMA<1>(d, a, b);
    MMA<1>(d, a + 2, b + 2);
    MMA<1>(d, a + 4, b + 4);
    MMA<1>(d, a + 6, b + 6);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  float total = 0;
#pragma unroll
  for (int k = 0; k < 128; ++k) total += d[k];
  if (total == 0.125f) *out = 1;
}
)";

class CudaProbes {
public:
  CudaProbes(std::shared_ptr<device::Cuda> gpu, device::CudaCompiler& compiler)
      : gpu_(std::move(gpu)), module_(gpu_->load(compiler.compile(cuda_probes(), "sm_90a"))),
        region_(gpu_->allocate(bytes)), out_(gpu_->allocate(64)) {}

  Machine run() {
    Machine m;
    m.device = gpu_->name() + ", " + std::to_string(gpu_->processors()) + " processors";
    m.driver = driver();
    m.margin = 1.05; // of a clock that nobody shares
    m.date = today();
    m.workers = gpu_->processors(), m.lanes = 32;
    m.clock = gpu_->clock(), m.schedulers = 4;
    fill();
    arithmetic(m);
    levels(m);
    launches(m);
    return m;
  }

private:
  static constexpr size_t bytes = size_t(4) << 30;
  static constexpr int64_t word = 16;

  struct Arguments { // of a launch: values whose addresses are taken
    std::vector<uint64_t> values;
    std::vector<void*> addresses;

    explicit Arguments(std::vector<uint64_t> v) : values(std::move(v)) {
      for (auto& x : values) addresses.push_back(&x);
    }
  };

  void start(const char* name, int64_t blocks, int lanes, int64_t shared, std::vector<uint64_t> values,
             bool early = false) {
    gpu_->launch(module_->function(name, shared), blocks, lanes, shared,
                 Arguments(std::move(values)).addresses, early);
  }

  // Seconds of each of `repeats` runs, the least first.
  std::vector<double> times(int repeats, const std::function<void()>& work) {
    work();
    gpu_->wait();
    std::vector<double> all;
    for (int k = 0; k < repeats; ++k) {
      void* from = gpu_->mark();
      work();
      all.push_back(gpu_->seconds(from, gpu_->mark()));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  // The kernel module's version, the first word of its line that begins with a digit; else the API's.
  std::string driver() const {
    std::ifstream in("/proc/driver/nvidia/version");
    for (std::string word; in >> word;)
      if (std::isdigit(static_cast<unsigned char>(word[0]))) return word;
    return "CUDA " + std::to_string(gpu_->driver_version());
  }

  Rate rate(double work, int repeats, const std::function<void()>& f) {
    const auto t = times(repeats, f);
    return {work / t.front(), work / t[t.size() / 2]};
  }

  void fill() {
    start("probe_fill", 8 * gpu_->processors(), 512, 0, {region_->address(), bytes / word});
    gpu_->wait();
  }

  void read(const char* name, int64_t blocks, int lanes, int64_t shared, int64_t size, uint64_t passes) {
    start(name, blocks, lanes, shared, {region_->address(), uint64_t(size / word), passes, out_->address()});
  }

  void arithmetic(Machine& m) {
    const int64_t sms = gpu_->processors();
    m.fma = rate(2.0 * 16 * 4096 * 256 * 8 * double(sms), 7, [&] {
      start("probe_fma", 8 * sms, 256, 0, {out_->address(), 4096});
    });
    m.exp = rate(8.0 * 4096 * 256 * 8 * double(sms), 7, [&] {
      start("probe_exp", 8 * sms, 256, 0, {out_->address(), 4096});
    });
    // The best on zeros: there the clock is highest. Random operands make it typical.
    const double flops = 2.0 * 64 * 256 * 64 * 2 * 16384 * double(sms);
    auto matrix = [&](uint64_t operands) {
      return rate(flops, 5, [&] {
        start("probe_matrix", sms, 256, 49152 + 1024, {operands, out_->address(), 16384});
      });
    };
    m.matrix = {matrix(0).best, matrix(region_->address()).typical};
  }

  // Least seconds of a step of a chase through `nodes` lines; `cold`: everything else was touched before.
  double latency(int nodes, bool cold) {
    const uint64_t steps = 4096;
    start("probe_ring", 64, 256, 0, {region_->address(), uint64_t(nodes)});
    double least = 1;
    for (int k = 0; k < 4; ++k) {
      if (cold) flush();
      void* from = gpu_->mark();
      start("probe_chase", 1, 1, 0, {region_->address(), uint64_t(k * 7919 % nodes), steps, out_->address()});
      least = std::min(least, gpu_->seconds(from, gpu_->mark()) / double(steps));
    }
    return least;
  }

  void levels(Machine& m) {
    const int64_t sms = gpu_->processors(), near = 64 << 10, far = int64_t(24) << 20;
    Level l1{"L1", sms * (int64_t(256) << 10), {}, false, 0};
    l1.read = rate(double(near) * double(sms) * 400, 5, [&] {
      start("probe_near", sms, 1024, 0, {region_->address(), uint64_t(near / word), 400, out_->address()});
    });
    Level l2{"L2", int64_t(60) << 20, {}, true, 0}, memory{"memory", 0, {}, true, 0};
    for (int lanes : {512, 1024})
      for (int64_t each : {1, 2}) {
        const Rate r = rate(double(far) * 20, 5, [&] { read("probe_read4", each * sms, lanes, 0, far, 20); });
        if (r.best > l2.read.best) l2.read = r;
        const Rate x = rate(double(bytes), 5, [&] { read("probe_read8", each * sms, lanes, 0, bytes, 1); });
        if (x.best > memory.read.best) memory.read = x;
      }
    m.write = rate(double(bytes), 3, [&] {
      start("probe_write", 4 * sms, 512, 0, {region_->address(), bytes / word});
    });
    m.ingress = rate(double(1 << 20) * 50, 5, [&] { read("probe_read8", 1, 1024, 0, 1 << 20, 50); }).best;
    fill();
    l2.latency = latency(4096, false);
    memory.latency = latency(1 << 17, true);
    fill();
    m.levels = {l1, l2, memory};
    // One workgroup a processor, pinned by its shared memory.
    for (auto [name, words] : {std::pair{"probe_read1", 1}, {"probe_read4", 4}, {"probe_read8", 8}})
      for (int lanes : {32, 128, 256, 512, 1024}) {
        const int64_t on_way = int64_t(lanes) * words * word,
                      size = std::min<int64_t>(int64_t(bytes), on_way << 18);
        m.in_flight.push_back(
            {on_way, rate(double(size), 3, [&, n = name] { read(n, sms, lanes, 120 << 10, size, 1); }).best});
      }
    std::sort(m.in_flight.begin(), m.in_flight.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; });
  }

  // Least seconds of each of a chain of launches, in one graph. `touch`: a line apart for every workgroup and
  // launch; cold: with everything else touched before.
  struct Chain {
    const char* name;
    int64_t blocks;
    int lanes;
    int64_t shared = 0;
    bool early = false, touch = false, cold = false;
    int count = 100;
  };

  double chain(const Chain& c) {
    const uint64_t apart = uint64_t(c.blocks) * 2048;
    const auto g = gpu_->capture([&] {
      for (int k = 0; k < c.count; ++k)
        start(c.name, c.blocks, c.lanes, c.shared,
              c.touch ? std::vector<uint64_t>{region_->address() + uint64_t(k) * apart, out_->address()}
                      : std::vector<uint64_t>{out_->address()},
              c.early && k);
    });
    double least = 1;
    for (int k = 0; k < (c.cold ? 5 : 15); ++k) {
      if (c.cold) flush();
      void* from = gpu_->mark();
      g->run();
      const double t = gpu_->seconds(from, gpu_->mark()) / c.count;
      if (k) least = std::min(least, t);
    }
    return least;
  }

  // Everything but the first GiB of the region goes through the second level.
  void flush() {
    const size_t kept = size_t(1) << 30;
    start("probe_fill", 8 * gpu_->processors(), 512, 0, {region_->address() + kept, (bytes - kept) / word});
  }

  Start start_of(int64_t blocks, int lanes, int64_t shared) {
    return {chain({"probe_empty", blocks, lanes, shared}),
            chain({"probe_touch", blocks, lanes, shared, false, true}),
            chain({"probe_touch", blocks, lanes, shared, false, true, true})};
  }

  void launches(Machine& m) {
    const int64_t sms = gpu_->processors();
    m.one = start_of(1, 32, 0);
    for (int64_t n : {8, 16, 32, 64, 96})
      if (n < sms) m.some.emplace_back(n, start_of(n, 32, 0));
    m.every = start_of(sms, 64, 0);
    m.full = start_of(sms, 384, 200 << 10);
    m.call = m.one.empty, m.launch = chain({"probe_empty", sms, 256});
    m.begin_early = chain({"probe_early", 1, 32, 0, true});
    Chain many{"probe_empty", 4096 * sms, 128};
    many.count = 4;
    Chain few = many;
    few.blocks = 64 * sms;
    m.workgroup = std::max(0.0, (chain(many) - chain(few)) / (4032.0 * double(sms)));
  }

  std::shared_ptr<device::Cuda> gpu_;
  std::shared_ptr<device::CudaModule> module_;
  std::shared_ptr<device::CudaBuffer> region_, out_;
};
} // namespace

std::string cuda_probes() {
  const emit::MatrixInstruction mma{256, false, true, true, expr::Format::bf16};
  std::string kernel = matrix_text;
  for (size_t at; (at = kernel.find("MMA")) != std::string::npos;) kernel.replace(at, 3, emit::name(mma));
  return gpu_text + emit::text(mma) + kernel;
}

Machine probe(const std::shared_ptr<device::Cuda>& gpu, device::CudaCompiler& compiler) {
  Machine m = CudaProbes(gpu, compiler).run();
  m.compiler = compiler.identity();
  return m;
}

} // namespace tang::tune
