// On a machine with an NVIDIA GPU: every builder through generated CUDA, each kernel against the f64 oracle,
// then plain timings. Usage: verify_cuda [FOLDER for results] [builder ..]. Exit status 0: nothing failed. The name `large`
// asks for arrays of more than 2^31 elements, which take half a minute and 24 GiB of device memory.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <random>

#include "large_arrays.hpp"
#include "tensor_work.hpp"
#include "tang/models/cases.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/softmax.hpp"
#include "tang/base/hash.hpp"
#include "tang/run/cuda.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;

namespace {

eval::Array random_reals(std::vector<int64_t> shape, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<double> v(size_t(eval::volume(shape)));
  for (double& x : v) x = double(float(double(rng() >> 11) * 0x1p-53 * 2 - 1));
  return eval::reals(shape, v);
}

struct Totals {
  int passed = 0, failed = 0;
  std::string table;

  void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    table += line + "\n";
  }
};

std::string row(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string row(const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return text;
}

eval::Inputs with_random(const ir::Graph& g, eval::Inputs in) {
  uint64_t seed = 1;
  for (auto& n : g.nodes)
    if (auto* x = n.input(); x && !in.count(n.name)) {
      const auto shape = eval::bound(x->shape);
      in[n.name] = random_reals(shape, seed++);
      if (n.name.rfind("w.", 0) == 0 && shape.size() == 2) // weights keep the size of what they multiply
        for (double& v : in[n.name].r) v = double(float(v / std::sqrt(double(shape[1]))));
    }
  return in;
}

void verify_one(const std::string& name, const ir::Graph& g, eval::Inputs in, double budget,
                device::CudaCompiler& compiler, const std::shared_ptr<device::Cuda>& gpu, Totals& t,
                run::Options o = run::cuda_options()) {
  try {
    o.guards = true;
    run::CudaProgram p(g, compiler, gpu, o);
    const verify::Report r = verify::verify(p, g, with_random(g, std::move(in)), budget, 8);
    double worst = 0;
    int good = 0, bad = 0;
    auto judge = [&](const verify::Check& c, const char* kind) {
      worst = std::max(worst, c.error);
      if (c.ok && !c.unwritten) return void(++good);
      ++bad;
      t.say(row("  FAILED %s %s (%s): error %.2e, %lld of %lld unwritten. %s", kind, c.what.c_str(),
                c.schedule.c_str(), c.error, static_cast<long long>(c.unwritten),
                static_cast<long long>(c.values), c.why.c_str()));
    };
    for (auto& c : r.kernels) judge(c, "kernel");
    for (auto& c : r.outputs) judge(c, "output");
    for (auto& x : r.trespass) ++bad, t.say("  FAILED guard band: " + x);
    t.passed += good, t.failed += bad;
    t.say(row("%-26s %3zu kernels  %3d passed %3d failed  worst error %.2e of %.0e", name.c_str(),
              p.derivation().kernels.kernels.size(), good, bad, worst, budget));
  } catch (const std::exception& e) {
    ++t.failed;
    std::string why = e.what();
    if (auto* x = dynamic_cast<const Error*>(&e))
      for (auto& f : x->facts()) why += "; " + f.text.substr(0, 1500);
    t.say("  FAILED " + name + ": " + why);
    if (auto* x = dynamic_cast<const device::CudaError*>(&e); x && x->kind() == device::CudaError::lost)
      throw;
  }
}

// Median device seconds of each kernel and of the whole program.
void time_one(const std::string& name, const ir::Graph& g, double flops, double bytes,
              device::CudaCompiler& compiler, const std::shared_ptr<device::Cuda>& gpu, Totals& t) {
  run::CudaProgram p(g, compiler, gpu);
  for (auto& n : g.nodes)
    if (auto* in = n.input()) {
      std::vector<float> v(size_t(p.elements(n.name)));
      uint64_t seed = hash_of(n.name);
      for (auto& x : v) x = float(int64_t(mix(seed++) >> 40) - (1 << 23)) * 0x1p-23f;
      check(in->format == ir::Format::f32, "timed inputs are f32");
      p.write(n.name, v.data());
    }
  auto median = [&](const std::function<void()>& f) {
    for (int k = 0; k < 3; ++k) f();
    gpu->wait();
    std::vector<double> s;
    for (int k = 0; k < 11; ++k) {
      void* from = gpu->mark();
      f();
      s.push_back(gpu->seconds(from, gpu->mark()));
    }
    std::sort(s.begin(), s.end());
    return s[s.size() / 2];
  };
  const double all = median([&] { p.run(); });
  t.say(row("%-26s %10.1f us %9.1f GFLOP/s %8.1f GB/s", name.c_str(), all * 1e6, flops / all * 1e-9,
            bytes / all * 1e-9));
  for (size_t k = 0; k < p.derivation().kernels.kernels.size(); ++k) {
    auto& l = p.derivation().kernels.kernels[k];
    t.say(row("    %-22s %10.1f us  %s", l.label.c_str(), median([&] { p.run_kernel(k); }) * 1e6,
              l.schedule.c_str()));
  }
}

ir::Graph matmul(int64_t n) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {n, n}), w = b.input("w", {n, n});
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, x(i, k) * w(k, j))), "y");
  return b.graph();
}

ir::Graph attention(int64_t heads, int64_t n, int64_t d) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {1, heads, n, d}), k = b.input("k", {1, heads, n, d}),
             v = b.input("v", {1, heads, n, d});
  models::AttentionOptions o;
  o.mask = models::causal();
  b.output(models::attention(q, k, v, o).out, "out");
  return b.graph();
}

// Rows that begin at any place in memory: those of a part of an array, with what lies along them at their own places.
ir::Graph odd_rows(int64_t m, int64_t n, ir::Format f) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {m, n + 5}, f), gain = b.param("gain", {n}, f);
  auto [i] = ir::axes<"i">();
  const ir::Axis j = ir::axis("j", ir::Extent(n));
  const ir::Scalar part = x(i, ir::Index(j) + ir::Index(3));
  b.output(ir::map({i, j}, gain(j) * part * ir::recip(1.0 + ir::sum(j, ir::square(part)) / double(n))), "y", f);
  b.output(models::softmax(b.input("z", {m, n}, f)), "p", f);
  b.output(models::layer_norm(b.input("u", {m, n}, f), gain, b.param("bias", {n}, f)), "w", f);
  return b.graph();
}

// Rows of which one value is left: among their random numbers are ties, an empty row, one with a NaN and one of zeros of both
// signs.
ir::Graph folded_rows(int64_t m, int64_t n, ir::Format f) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {m, n}, f);
  auto [i, j] = ir::axes<"i j">();
  b.output(models::log_sum_exp(x), "sum");
  b.output(models::cross_entropy(x, b.input("target", {m}, ir::Format::i64)), "loss");
  for (bool most : {true, false}) {
    const auto s = ir::fold(most ? ir::argmax() : ir::argmin(), j, {x(i, j), ir::iota(j)});
    b.output(ir::map({i}, s[0]), most ? "most" : "least");
    b.output(ir::map({i}, s[1]), most ? "at most" : "at least");
  }
  return b.graph();
}

eval::Inputs rows_with_rare_values(int64_t m, int64_t n) {
  eval::Array x = random_reals({m, n}, 5);
  for (int64_t j = 0; j < n; ++j) {
    x.r[size_t(j)] = -INFINITY;
    x.r[size_t(2 * n + j)] = j % 3 ? -0.0 : 0.0;
    x.r[size_t(3 * n + j)] = j % 7 == 6 ? 1 : j % 7 == 3 ? -1 : x.r[size_t(3 * n + j)];
  }
  x.r[size_t(n + n / 2)] = NAN;
  std::vector<int64_t> target;
  for (int64_t i = 0; i < m; ++i) target.push_back(i * 31 % n);
  return {{"x", x}, {"target", eval::indices({m}, target)}};
}

// Works of tensor.cpp whose kernels are role programs, in every format, and what such programs have beside them.
constexpr const char* by_roles[] = {
    "gemm 200 264 320 nt bf16",
    "gemm 136 200 72 tn tf32",
    "gemm 200 264 320 nn f32",
    "conv 2 14 14 64 64 3 1 1 bf16",
    "attention 1 4 2 256 256 64 causal",
    "attention 1 4 2 256 256 64 causal f32",
    "backward 1 2 2 192 192 128 causal",
    "backward 1 2 2 192 192 64 full f32",
    "block 128 bf16 both model=192 heads=6 kv=2 head=64 hidden=256",
    "block 128 tf32 both model=192 heads=6 kv=2 head=64 hidden=256",
};
} // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "";
  Totals t;
  try {
    device::CudaCompilerOptions co;
    const auto compiler = device::CudaCompiler::open(co);
    const auto gpu = device::Cuda::open();
    t.say(row("%s, capability %d, %d processors, %.1f GB, driver %d; %s", gpu->name().c_str(),
              gpu->capability(), gpu->processors(), double(gpu->memory()) * 1e-9, gpu->driver_version(),
              compiler->identity().c_str()));
    const auto start = std::chrono::steady_clock::now();
    for (auto& c : cases::builders) {
      bool wanted = argc <= 2;
      for (int a = 2; a < argc; ++a) wanted |= std::string(argv[a]) == c.name;
      if (!wanted) continue;
      int n = 0;
      c.run({[&](const ir::Graph& g, eval::Inputs in, double budget) {
        verify_one(std::string(c.name) + " " + std::to_string(n++), g, std::move(in), budget, *compiler, gpu,
                   t);
      }});
    }
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 7, 9}, {17, 33, 65}, {200, 300, 500}, {97, 1025, 31}}) {
      ir::Builder b;
      ir::Tensor x = b.input("x", {m, k}), w = b.input("w", {k, n}), c = b.input("c", {n});
      auto [i, j, l] = ir::axes<"i j l">();
      b.output(ir::map({i, j}, ir::relu(ir::sum(l, x(i, l) * w(l, j)) + c(j))), "y");
      verify_one("matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k), b.graph(),
                 {}, 1e-5, *compiler, gpu, t);
    }
    verify_one("attention 8x512", attention(8, 512, 64), {}, 1e-5, *compiler, gpu, t);
    for (int64_t n : {2057, 4099, 9001, 20003, 70001})
      for (auto f : {ir::Format::f32, ir::Format::bf16}) {
        const std::string name = "odd rows " + std::to_string(n) + " " + expr::row(f).name;
        verify_one(name, odd_rows(9, n, f), {}, f == ir::Format::f32 ? 1e-5 : 1e-2, *compiler, gpu, t);
      }
    for (auto [m, n] : {std::array<int64_t, 2>{300, 64}, {41, 576}, {9, 1000}, {9, 4096}, {9, 20003}, {3, 151936}})
      for (auto f : {ir::Format::bf16, ir::Format::f16, ir::Format::f32}) {
        const std::string name = "folded rows " + std::to_string(n) + " " + expr::row(f).name;
        verify_one(name, folded_rows(m, n, f), rows_with_rare_values(m, n), 1e-5, *compiler, gpu, t);
      }
    for (const char* line : by_roles) {
      std::istringstream in(line);
      const bench::Work w = bench::Work::parse(in);
      run::Options o = run::hopper_options();
      o.schedule.pieces = w.pieces();
      if (w.block()) o.operands = w.element;
      verify_one(line, w.graph(), {}, w.fine() ? 2e-5 : w.block() ? 2e-2 : 8e-3, *compiler, gpu, t, o);
    }
    if (std::any_of(argv + std::min(argc, 2), argv + argc, [](const char* x) { return std::string(x) == "large"; }))
      bench::verify_large(*compiler, gpu, [&](const std::string& line) { t.say(line); }, t.passed, t.failed);
    t.say(row("%d passed, %d failed (%d compilations, %.1f s)", t.passed, t.failed, compiler->runs(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
    if (argc <= 2 && !t.failed) {
      for (int64_t n : {1024, 4096}) {
        const double x = double(n);
        time_one("matmul " + std::to_string(n), matmul(n), 2 * x * x * x, 12 * x * x, *compiler, gpu, t);
      }
      for (int64_t n : {1024, 4096}) {
        const double x = double(n);
        time_one("causal attention " + std::to_string(n), attention(16, n, 64), 16 * 2 * x * x * 64,
                 16 * 4 * x * 64 * 4, *compiler, gpu, t);
      }
    }
  } catch (const std::exception& e) {
    ++t.failed;
    std::string why = e.what();
    if (auto* x = dynamic_cast<const Error*>(&e))
      for (auto& f : x->facts()) why += "; " + f.text;
    t.say("FAILED: " + why);
  }
  if (!folder.empty()) std::ofstream(folder + "/verify_cuda.txt") << t.table;
  return t.failed ? 1 : 0;
}
