// Kernels of matrix instructions on a machine with an H200, one command a line of standard input:
//   compile WORK     derives and compiles, needs no GPU     source WORK FILE     writes the CUDA text
//   check WORK       against f64 on sampled rows, outputs poisoned, guard bands     time WORK [RUNS]  median
//   milliseconds verify WORK      every kernel against the oracle, whole (small sizes)
// WORK: gemm M N K nn|nt|tn|tt FORMAT, or attention BATCH HEADS KV_HEADS ROWS KEYS D MASK; the second letter
// of a transpose is B's: t is [N, K]. MASK: full, causal, window, softcap, alibi, prefix, document (causal
// too). Usage: tensor [CACHE FOLDER].
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/run/cuda.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;

namespace {

struct Work {
  std::string kind, transposes, format, mask;
  ir::Format element = ir::Format::bf16;
  int64_t m = 0, n = 0, k = 0, batch = 0, heads = 0, kv = 0, rows = 0, keys = 0, d = 0;

  bool gemm() const { return kind == "gemm"; }

  bool backward() const { return kind == "backward"; }

  bool attends() const { return kind == "attention" || backward(); }

  bool at(char side) const { return transposes[side == 'a' ? 0 : 1] == 't'; }

  int64_t group() const { return heads / kv; }

  static Work parse(std::istream& in) {
    Work w;
    in >> w.kind;
    w.format = "bf16";
    if (w.kind == "gemm")
      in >> w.m >> w.n >> w.k >> w.transposes >> w.format;
    else if (w.attends())
      in >> w.batch >> w.heads >> w.kv >> w.rows >> w.keys >> w.d >> w.mask;
    w.element = ir::format_named(w.format);
    if (!in || (!w.gemm() && !w.attends()))
      throw Error({}, "no such work: " + w.kind, {}, "see the first lines of tensor.cpp");
    return w;
  }

  ir::Graph graph() const {
    ir::Builder b;
    const auto f = element;
    if (gemm()) {
      ir::Tensor x = b.input("a", at('a') ? std::vector<ir::Extent>{k, m} : std::vector<ir::Extent>{m, k}, f);
      ir::Tensor y = b.input("b", at('b') ? std::vector<ir::Extent>{n, k} : std::vector<ir::Extent>{k, n}, f);
      auto [i, j, l] = ir::axes<"i j l">();
      b.output(ir::map({i, j}, ir::sum(l, (at('a') ? x(l, i) : x(i, l)) * (at('b') ? y(j, l) : y(l, j)))),
               "out", f);
      return b.graph();
    }
    ir::Tensor q = group() > 1 ? b.input("q", {batch, kv, group(), rows, d}, f)
                               : b.input("q", {batch, heads, rows, d}, f);
    ir::Tensor x = b.input("k", {batch, kv, keys, d}, f), y = b.input("v", {batch, kv, keys, d}, f);
    models::AttentionOptions o;
    if (mask == "causal") o.mask = models::causal();
    if (mask == "window") o.mask = models::causal() && models::window(window);
    if (mask == "prefix") o.mask = models::causal() || models::prefix(prefix);
    if (mask == "softcap") o.changes.push_back(models::soft_cap(cap));
    if (mask == "alibi") {
      const std::vector<ir::Extent> of =
          group() > 1 ? std::vector<ir::Extent>{kv, group()} : std::vector<ir::Extent>{heads};
      o.changes.push_back(models::alibi(b.input("slopes", of)));
    }
    if (mask == "document") {
      ir::Tensor start = b.input("start", {batch, rows}, ir::Format::i32),
                 end = b.input("end", {batch, rows}, ir::Format::i32);
      o.mask = models::causal() && models::key_range(start, end);
    }
    const auto a = models::attention(q, x, y, o);
    b.output(a.out, "out", f);
    b.output(a.lse, "lse");
    if (backward()) {
      const ir::Tensor dout = b.input("dout", a.out.shape(), f);
      const auto d = diff::vjp(a.out, dout, {q, x, y});
      b.output(d[0], "dq", f), b.output(d[1], "dk", f), b.output(d[2], "dv", f);
    }
    return b.graph();
  }

  static constexpr int64_t window = 128, prefix = 256, document = 700;
  static constexpr double cap = 20;

  double slope(int64_t head) const { return std::exp2(-8.0 * double(head + 1) / double(heads)); }

  int64_t position(int64_t i) const { return i + keys - rows; }

  int64_t first(int64_t i) const { // visible keys of row i
    if (mask == "window") return std::clamp<int64_t>(position(i) - window + 1, 0, keys);
    return mask == "document" ? std::clamp<int64_t>(i / document * document, 0, keys) : 0;
  }

  int64_t last(int64_t i) const {
    if (mask == "full" || mask == "softcap" || mask == "alibi") return keys;
    const int64_t causal = std::clamp<int64_t>(position(i) + 1, 0, keys);
    return mask == "prefix" ? std::max(causal, std::min(prefix, keys)) : causal;
  }

  double changed(double score, int64_t head, int64_t i, int64_t j) const {
    if (mask == "softcap") return cap * std::tanh(score / cap);
    return mask == "alibi" ? score - slope(head) * double(position(i) - j) : score;
  }

  double flops() const {
    if (gemm()) return 2.0 * double(m) * double(n) * double(k);
    double pairs = 0;
    for (int64_t i = 0; i < rows; ++i) pairs += double(std::max<int64_t>(0, last(i) - first(i)));
    return 4.0 * pairs * double(d) * double(heads) * double(batch);
  }
};

// Normal values; long buffers repeat a block of a prime number of them.
std::vector<uint8_t> normals(size_t n, ir::Format f, uint64_t seed) {
  constexpr size_t block = 200003;
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(std::min(n, block));
  for (double& v : values) v = ir::rounded(normal(rng), f);
  const size_t bytes = size_t(run::bytes_of(f)), some = values.size() * bytes;
  std::vector<uint8_t> small(some), out(n * bytes);
  run::write(small.data(), f, values);
  for (size_t i = 0; i < out.size(); i += some)
    std::memcpy(&out[i], small.data(), std::min(some, out.size() - i));
  return out;
}

double real(const std::vector<uint8_t>& data, int64_t i, ir::Format f) {
  if (run::bytes_of(f) == 4 || f == ir::Format::bf16) {
    uint32_t u = 0;
    if (f == ir::Format::bf16)
      std::memcpy(reinterpret_cast<uint8_t*>(&u) + 2, &data[size_t(2 * i)], 2);
    else
      std::memcpy(&u, &data[size_t(4 * i)], 4);
    float x;
    std::memcpy(&x, &u, 4);
    return double(x);
  }
  return run::read_reals(&data[size_t(2 * i)], f, 1)[0];
}

class Bench {
public:
  explicit Bench(const std::string& cache) {
    device::CudaCompilerOptions o;
    o.cache = cache;
    compiler_ = device::CudaCompiler::open(o);
    auto gpu = device::Cuda::find();
    if (gpu) gpu_ = *gpu;
  }

  void command(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    const Work w = Work::parse(in);
    if (verb == "compile" || verb == "source" || verb == "plan") {
      const run::Options o = run::hopper_options();
      const auto d = run::derive(w.graph(), o);
      for (auto& l : d.kernels.kernels)
        std::printf("  %s: %s%s\n", l.label.c_str(), l.schedule.c_str(),
                    l.refused.empty() ? "" : ("; plain: " + l.refused).c_str());
      if (verb == "plan") {
        std::printf("%s%s\n", plan::print(d.plan).c_str(), text::print(*d.plan.graph).c_str());
        for (auto& l : d.kernels.kernels)
          if (l.roles) std::printf("%s\n", kernel::print(l.kernel).c_str());
        return;
      }
      const std::string text = run::cuda_source(d, o.target);
      std::string file;
      if (verb == "source" && in >> file) std::ofstream(file) << text;
      if (verb == "compile") compiler_->compile(text, "sm_90a"), report(compiler_->log());
      return;
    }
    if (!gpu_) throw Error({}, "no GPU", {}, "compile only");
    std::printf("%s", line.c_str());
    int runs = 10;
    if (verb == "time") in >> runs;
    (verb == "check" ? check(w) : verb == "verify" ? verify(w) : time(w, in ? runs : 10));
    std::printf("\n");
  }

private:
  // The lines of a compiler's log that condemn a kernel, and its registers.
  static void report(const std::string& log) {
    std::istringstream in(log);
    for (std::string line; std::getline(in, line);)
      if (line.find("C75") != std::string::npos || line.find("registers") != std::string::npos ||
          (line.find("spill") != std::string::npos &&
           line.find(" 0 bytes spill stores") == std::string::npos))
        std::printf("    %s\n", line.c_str());
  }

  std::shared_ptr<run::CudaProgram> program(const Work& w, bool guards) {
    run::Options o = run::hopper_options();
    o.guards = guards;
    auto p = std::make_shared<run::CudaProgram>(w.graph(), *compiler_, gpu_, o);
    data_.clear();
    for (const char* name : {"a", "b", "q", "k", "v"}) {
      if (w.gemm() != (name[0] == 'a' || name[0] == 'b')) continue;
      data_[name] = normals(size_t(p->elements(name)), w.element, uint64_t(17 + name[0]));
      p->write(name, data_[name].data());
    }
    if (w.mask == "alibi") {
      std::vector<float> slopes;
      for (int64_t h = 0; h < w.heads; ++h) slopes.push_back(float(w.slope(h)));
      p->write("slopes", slopes.data());
    }
    if (w.mask == "document") {
      std::vector<int32_t> start, end;
      for (int64_t r = 0; r < w.batch * w.rows; ++r)
        start.push_back(int32_t(w.first(r % w.rows))),
            end.push_back(int32_t(std::min(w.keys, w.first(r % w.rows) + Work::document)));
      p->write("start", start.data()), p->write("end", end.data());
    }
    for (auto& l : p->derivation().kernels.kernels)
      if (!l.roles && !l.refused.empty()) std::printf(" [plain: %s]", l.refused.c_str());
    return p;
  }

  void check(const Work& w) {
    auto p = program(w, true);
    p->memory("out")->poison();
    if (!w.gemm()) p->memory("lse")->poison();
    p->run();
    p->run(); // back to back: counters and barriers are as they were
    std::vector<uint8_t> out(size_t(p->elements("out") * run::bytes_of(w.element)));
    p->read("out", out.data());
    int64_t bad = 0;
    for (int64_t i = 0; i < p->elements("out"); ++i) bad += !std::isfinite(real(out, i, w.element));
    std::vector<float> lse;
    if (!w.gemm()) lse.resize(size_t(p->elements("lse"))), p->read("lse", lse.data());
    const int samples = w.gemm() && w.n * w.k > int64_t(20) << 20 ? 16 : 64;
    std::mt19937_64 rng(5);
    std::vector<int64_t> rows;
    const int64_t all = w.gemm() ? w.m : w.batch * w.heads * w.rows;
    for (int s = 0; s < samples; ++s)
      rows.push_back(s < 4 ? (s % 2 ? all - 1 - s / 2 : s / 2) % all : int64_t(rng() % uint64_t(all)));
    std::vector<double> num(rows.size()), den(rows.size()), off(rows.size());
    std::vector<std::thread> threads;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned t = 0; t < cores; ++t)
      threads.emplace_back([&, t] {
        for (size_t s = t; s < rows.size(); s += cores)
          w.gemm() ? gemm_row(w, out, rows[s], num[s], den[s])
                   : attention_row(w, out, lse, rows[s], num[s], den[s], off[s]);
      });
    for (auto& t : threads) t.join();
    double n = 0, d = 0, worst = 0;
    for (size_t s = 0; s < rows.size(); ++s)
      n += num[s], d += den[s], worst = std::max(worst, off[s]), worst = off[s] != off[s] ? 1e9 : worst;
    const double error = std::sqrt(n / d);
    const auto trespass = p->trespass();
    std::printf("  err %.2e lse %.1e bad %lld guards %zu %s", error, worst, static_cast<long long>(bad),
                trespass.size(), error < 6e-3 && worst < 2e-3 && !bad && trespass.empty() ? "ok" : "WRONG");
  }

  void verify(const Work& w) {
    run::Options o = run::hopper_options();
    o.guards = true;
    const ir::Graph g = w.graph();
    run::CudaProgram p(g, *compiler_, gpu_, o);
    eval::Inputs in;
    for (auto& n : g.nodes)
      if (auto* x = n.input()) {
        const auto shape = eval::bound(x->shape);
        if (expr::type_of(x->format) == expr::Type::real) {
          const auto data = normals(size_t(eval::volume(shape)), x->format, uint64_t(17 + n.name[0]));
          std::vector<double> v(size_t(eval::volume(shape)));
          for (size_t i = 0; i < v.size(); ++i) v[i] = real(data, int64_t(i), x->format);
          in[n.name] = eval::reals(shape, v);
        } else {
          std::vector<int64_t> v;
          for (int64_t r = 0; r < w.batch * w.rows; ++r)
            v.push_back(n.name == "start" ? w.first(r % w.rows)
                                          : std::min(w.keys, w.first(r % w.rows) + Work::document));
          in[n.name] = eval::indices(shape, v);
        }
      }
    const verify::Report r = verify::verify(p, g, in, 8e-3, 8);
    std::printf("  %d passed %d failed worst %.2e guards %zu %s", r.verified(), r.failed(), r.worst(),
                r.trespass.size(), r.ok() ? "ok" : "WRONG");
    for (auto* part : {&r.kernels, &r.outputs})
      for (auto& c : *part)
        if (!c.ok)
          std::printf(" [%s (%s): %.2e, %lld unwritten %s]", c.what.c_str(), c.schedule.c_str(), c.error,
                      static_cast<long long>(c.unwritten), c.why.c_str());
  }

  void gemm_row(const Work& w, const std::vector<uint8_t>& out, int64_t i, double& num, double& den) {
    const auto &a = data_.at("a"), &b = data_.at("b");
    std::vector<double> sum(size_t(w.n), 0.0);
    for (int64_t l = 0; l < w.k; ++l) {
      const double x = real(a, w.at('a') ? l * w.m + i : i * w.k + l, w.element);
      for (int64_t j = 0; j < w.n; ++j)
        sum[size_t(j)] += x * real(b, w.at('b') ? j * w.k + l : l * w.n + j, w.element);
    }
    for (int64_t j = 0; j < w.n; ++j) {
      const double e = real(out, i * w.n + j, w.element) - sum[size_t(j)];
      num += e * e, den += sum[size_t(j)] * sum[size_t(j)];
    }
  }

  void attention_row(const Work& w, const std::vector<uint8_t>& out, const std::vector<float>& lse,
                     int64_t row, double& num, double& den, double& off) {
    const int64_t i = row % w.rows, head = row / w.rows, kv = head / w.group();
    const auto &q = data_.at("q"), &k = data_.at("k"), &v = data_.at("v");
    const int64_t q0 = row * w.d, k0 = kv * w.keys * w.d;
    const int64_t hi = w.last(i), lo = w.first(i);
    std::vector<double> s(size_t(w.keys), -INFINITY), sum(size_t(w.d), 0.0);
    double top = -INFINITY, total = 0;
    for (int64_t j = lo; j < hi; ++j) {
      double x = 0;
      for (int64_t c = 0; c < w.d; ++c)
        x += real(q, q0 + c, w.element) * real(k, k0 + j * w.d + c, w.element);
      x = w.changed(x / std::sqrt(double(w.d)), head % w.heads, i, j);
      s[size_t(j)] = x, top = std::max(top, x);
    }
    for (int64_t j = lo; j < hi; ++j) {
      const double e = std::exp(s[size_t(j)] - top);
      total += e;
      for (int64_t c = 0; c < w.d; ++c) sum[size_t(c)] += e * real(v, k0 + j * w.d + c, w.element);
    }
    for (int64_t c = 0; c < w.d; ++c) {
      const double want = total ? sum[size_t(c)] / total : 0, e = real(out, row * w.d + c, w.element) - want;
      num += e * e, den += want * want;
    }
    const double want = top + std::log(total);
    off = total ? std::fabs(double(lse[size_t(row)]) - want) : lse[size_t(row)] == -INFINITY ? 0 : 1e9;
  }

  // A graph of some runs, replayed back to back; the median of twenty replays.
  void time(const Work& w, int runs) {
    constexpr int replays = 20;
    std::string key = w.kind + w.transposes + w.format + w.mask;
    for (int64_t x : {w.m, w.n, w.k, w.batch, w.heads, w.kv, w.rows, w.keys, w.d})
      key += " " + std::to_string(x);
    if (key != timed_) {
      graph_.reset(), program_.reset();
      program_ = program(w, false);
      program_->run();
      gpu_->wait();
      timed_ = key;
    }
    if (!graph_ || runs != graphed_) {
      graph_ = gpu_->capture([&] {
        for (int r = 0; r < runs; ++r) program_->run();
      });
      graphed_ = runs;
    }
    std::vector<double> s;
    for (int r = 0; r < replays + 3; ++r) {
      void* from = gpu_->mark();
      graph_->run();
      const double t = gpu_->seconds(from, gpu_->mark()) / runs;
      if (r >= 3) s.push_back(t);
    }
    std::sort(s.begin(), s.end());
    const double t = s[s.size() / 2];
    std::printf("  %.5f ms %.1f TFLOP/s", t * 1e3, w.flops() / t * 1e-12);
  }

  std::shared_ptr<device::CudaCompiler> compiler_;
  std::shared_ptr<device::Cuda> gpu_;
  std::map<std::string, std::vector<uint8_t>> data_;
  std::string timed_;
  int graphed_ = 0; // runs in the graph
  std::shared_ptr<run::CudaProgram> program_;
  std::shared_ptr<device::CudaGraph> graph_;
};
} // namespace

int main(int argc, char** argv) {
  try {
    Bench bench(argc > 1 ? argv[1] : "");
    std::string line;
    int failed = 0;
    while (std::getline(std::cin, line)) {
      if (line.empty() || line[0] == '#') continue;
      try {
        bench.command(line);
      } catch (const std::exception& e) {
        ++failed;
        std::string why = e.what();
        if (auto* x = dynamic_cast<const Error*>(&e))
          for (auto& f : x->facts()) why += "; " + f.text.substr(0, 1500);
        std::replace(why.begin(), why.end(), '\n', ' '); // an answer is one line
        std::printf("%s  FAILED %s\n", line.c_str(), why.c_str());
        if (auto* x = dynamic_cast<const device::CudaError*>(&e); x && x->kind() == device::CudaError::lost)
          return 2;
      }
      std::fflush(stdout);
    }
    return failed ? 1 : 0;
  } catch (const std::exception& e) {
    std::printf("FAILED %s\n", e.what());
    return 2;
  }
}
