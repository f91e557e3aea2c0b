// Generated kernels beside their peers on one thread, interleaved in one process; best of N, ratios of the
// bests.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <random>

#include "attention.hpp"
#include "gemm.hpp"
#include "norms.hpp"
#include "tang/device/compiler.hpp"
#include "tang/device/cpu.hpp"
#include "tang/emit/c.hpp"

extern "C" {
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);
void openblas_set_num_threads(int);
char* openblas_get_corename();
}

namespace {
using namespace cpu_kernels;

struct Bench {
  device::Cpu cpu{1};
  device::Compiler compiler;
  emit::COptions options;
  std::map<std::string, int> set; // fields given on the command line

  int field(const char* name, int64_t otherwise) const {
    return set.count(name) ? set.at(name) : int(otherwise);
  }

  struct Loaded {
    std::shared_ptr<device::Library> library;
    device::KernelFunction f;
    int64_t workgroups, scratch;
  };

  Loaded load(const Kernel& k) {
    const std::string text = emit::c_unit({&k}, options);
    if (set.count("dump"))
      if (FILE* f = std::fopen((k.name + ".c").c_str(), "w")) std::fputs(text.c_str(), f), std::fclose(f);
    auto lib = compiler.compile(text);
    Loaded l{lib, lib->function<device::KernelFunction>(k.name), workgroups(k), emit::scratch_bytes(k)};
    cpu.reserve(l.scratch);
    return l;
  }

  void run(const Loaded& l, std::vector<void*> args) {
    cpu.launch(l.f, args.data(), l.workgroups, l.scratch);
  }
};

// Seconds of this thread: others share the machine, and a kernel that waits for its turn is not slow.
double busy() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

std::vector<double> best(std::vector<std::function<void()>> all, int rounds, double seconds) {
  std::vector<double> t(all.size(), 1e30);
  const double end = device::Cpu::seconds() + seconds;
  for (int r = 0; r < rounds || device::Cpu::seconds() < end; ++r)
    for (size_t i = 0; i < all.size(); ++i) {
      const double from = busy();
      all[i]();
      t[i] = std::min(t[i], busy() - from);
    }
  return t;
}

device::Buffer noise(size_t n, unsigned seed) {
  device::Buffer b(n * 4);
  std::minstd_rand r(seed);
  for (size_t i = 0; i < n; ++i) b.as<float>()[i] = float(double(r()) / double(r.max()) - 0.5);
  return b;
}

void sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  cblas_sgemm(101, 111, 111, int(m), int(n), int(k), 1, a, int(k), b, int(n), 0, c, int(n));
}

void bench_gemm(Bench& x, const std::vector<int64_t>& sizes) {
  for (int64_t n : sizes) {
    GemmBlocks z;
    z.rows = x.field("rows", z.rows), z.vectors = x.field("vectors", z.vectors), z.kc = x.field("kc", z.kc),
    z.mc = x.field("mc", z.mc);
    z.panels = x.field("panels", z.panels), z.lanes = x.options.lanes;
    auto pack = x.load(pack_columns("pack" + std::to_string(n), n, n, z.nr())),
         mul = x.load(gemm("gemm" + std::to_string(n), {n, n, n}, z));
    auto a = noise(size_t(n * n), 1), b = noise(size_t(n * n), 2), c = noise(size_t(n * n), 3),
         d = noise(size_t(n * n), 4);
    device::Buffer p(size_t(blocks(n, z.nr()) * n * z.nr() * 4));
    const auto t = best({[&] {
                           x.run(pack, {b.data(), p.data()}), x.run(mul, {a.data(), p.data(), c.data()});
                         },
                         [&] { sgemm(n, n, n, a.as<float>(), b.as<float>(), d.as<float>()); },
                         [&] {
                           x.run(pack, {b.data(), p.data()});
                         }},
                        5, x.field("seconds", 4));
    double worst = 0;
    for (int64_t i = 0; i < n * n; ++i)
      worst = std::max(worst, double(std::fabs(c.as<float>()[i] - d.as<float>()[i])));
    const double flops = 2.0 * double(n) * double(n) * double(n) / 1e9;
    std::printf("gemm %5lld  %6.1f GF/s  OpenBLAS %6.1f  ratio %.3f  (packing B %.1f%%)  max diff %.1e\n",
                (long long)n, flops / t[0], flops / t[1], t[1] / t[0], 100 * t[2] / t[0], worst);
    std::fflush(stdout);
  }
}

void bench_attention(Bench& x, int64_t n, int64_t d, bool causal) {
  const AttentionShape s{1, n, n, d, causal};
  AttentionBlocks z;
  z.br = x.field("br", z.br), z.bc = x.field("bc", z.bc), z.rows = x.field("rows", z.rows),
  z.vectors = x.field("vectors", z.vectors);
  z.pv_rows = x.field("pv_rows", z.pv_rows), z.pv_vectors = x.field("pv_vectors", z.pv_vectors),
  z.ways = x.field("ways", z.ways);
  z.lanes = x.options.lanes;
  auto f = x.load(attention("attention" + std::to_string(d) + (causal ? "_causal" : ""), s, z));
  auto q = noise(size_t(n * d), 1), k = noise(size_t(n * d), 2), v = noise(size_t(n * d), 3),
       o = noise(size_t(n * d), 4);
  const int64_t g = 2048;
  auto ga = noise(size_t(g * g), 1), gb = noise(size_t(g * g), 2), gc = noise(size_t(g * g), 3);
  const auto t = best({[&] {
                         x.run(f, {q.data(), k.data(), v.data(), o.data()});
                       },
                       [&] { sgemm(g, g, g, ga.as<float>(), gb.as<float>(), gc.as<float>()); }},
                      5, x.field("seconds", 4));
  double worst = 0;
  for (int64_t i = 0; i < n; i += 37) {
    std::vector<double> w;
    double total = 0;
    for (int64_t j = 0; j < (causal ? i + 1 : n); ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) dot += double(q.as<float>()[i * d + c]) * k.as<float>()[j * d + c];
      w.push_back(std::exp(dot / std::sqrt(double(d))));
      total += w.back();
    }
    for (int64_t c = 0; c < d; ++c) {
      double want = 0;
      for (size_t j = 0; j < w.size(); ++j) want += w[j] * v.as<float>()[int64_t(j) * d + c];
      worst = std::max(worst, std::fabs(want / total - o.as<float>()[i * d + c]));
    }
  }
  const double pairs = causal ? 0.5 * double(n) * double(n + 1) : double(n) * double(n);
  const double rate = 4 * pairs * double(d) / 1e9 / t[0], peer = 2.0 * g * g * g / 1e9 / t[1];
  std::printf("attention n %lld d %3lld %s  %6.1f GF/s  sgemm 2048 %6.1f  ratio %.3f  max error %.1e\n",
              (long long)n, (long long)d, causal ? "causal" : "full  ", rate, peer, rate / peer, worst);
  std::fflush(stdout);
}

void bench_norms(Bench& x) {
  const int64_t columns = x.field("columns", 4096), rows = (int64_t(256) << 20) / 4 / columns;
  RowBlocks z;
  z.ways = x.field("ways", z.ways);
  auto soft = x.load(row_softmax("row_softmax", rows, columns, z)),
       rms = x.load(rms_norm("rms_norm", rows, columns, 1e-6, z));
  auto in = noise(size_t(rows * columns), 1), gain = noise(size_t(columns), 2);
  device::Buffer out(size_t(rows * columns * 4));
  const auto t = best({[&] {
                         x.run(soft, {in.data(), out.data()});
                       },
                       [&] { std::memcpy(out.data(), in.data(), out.size()); },
                       [&] {
                         x.run(rms, {in.data(), gain.data(), out.data()});
                       }},
                      5, x.field("seconds", 6));
  const double gb = 2 * double(out.size()) / 1e9;
  std::printf("softmax %.1f GB/s  rms norm %.1f  memcpy %.1f  ratios %.3f %.3f\n", gb / t[0], gb / t[2],
              gb / t[1], t[1] / t[0], t[1] / t[2]);
}
} // namespace

// bench_cpu_kernels [gemm | attention | norms] [cc=NAME] [lanes=16] [field=value ..] [n=SIZE]
int main(int argc, char** argv) {
  openblas_set_num_threads(1);
  std::string what = "all", cc = "gcc";
  std::map<std::string, int> set;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const size_t eq = a.find('=');
    if (eq == std::string::npos)
      what = a;
    else if (a.substr(0, eq) == "cc")
      cc = a.substr(eq + 1);
    else
      set[a.substr(0, eq)] = std::stoi(a.substr(eq + 1));
  }
  device::CompilerOptions o;
  o.search = {"/usr/local/bin", "/usr/bin", "/bin"};
  o.names = {cc};
  emit::COptions e;
  if (set.count("lanes")) e.lanes = set["lanes"];
  if (set.count("olevel")) o.flags.push_back("-O" + std::to_string(set["olevel"]));
  Bench x{device::Cpu{1}, device::Compiler{o}, e, set};
  std::printf("%s, %d lanes; OpenBLAS core %s\n", x.compiler.path().c_str(), e.lanes,
              openblas_get_corename());
  const int64_t n = x.field("n", 0);
  if (what == "all" || what == "gemm")
    bench_gemm(x, n ? std::vector<int64_t>{n} : std::vector<int64_t>{256, 512, 777, 1024, 2048});
  if (what == "all" || what == "attention")
    for (int64_t d : {64, 128})
      for (bool causal : {false, true})
        if (!x.set.count("d") || x.set["d"] == d) bench_attention(x, n ? n : 2048, d, causal);
  if (what == "all" || what == "norms") bench_norms(x);
}
