// Kernels of matrix instructions on a machine with an H200, one command a line of standard input:
//   compile WORK     derives and compiles, needs no GPU     source WORK FILE     writes the CUDA text
//   check WORK       against f64 on sampled rows, outputs poisoned, guard bands     time WORK [RUNS]  median
//   milliseconds (time-late: no kernel begins before the one before it has ended)
//   parts WORK    each kernel alone      verify WORK      every kernel against the oracle, whole
//   (small sizes)      clusters   workgroups that run at once, by the size of their cluster
//   choices WORK [MOST [WORD]]   a product's candidates of the cost rule (whose text has that word; alone: without
//   clusters), attention's first one with more and more polynomials, each timed (each checked first)      compile-choices WORK ..   compiled only
// WORK: gemm M N K nn|nt|tn|tt FORMAT (nt: blocks=128 after it: a scale for so many terms of a row, or of so
// many columns), conv BATCH HEIGHT WIDTH CHANNELS OUTS TAPS STRIDE GROUPS FORMAT
// (channels last, padded by half the taps), or attention|backward BATCH HEADS KV_HEADS ROWS KEYS D MASK [FORMAT]; the second
// letter of a transpose is B's: t is [N, K]. MASK: full, causal, window, softcap, alibi, prefix, t5, document
// (causal too); `joint=1` after it: the gradients in one kernel. `sm80=1` after a work: by mma.sync and cp.async. Or a transformer block: block ROWS FORMAT
// forward|both, both with its gradients.
// Usage: tensor [CACHE FOLDER].
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "tang/base/hash.hpp"
#include "tang/lower/tensor_choice.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/verify.hpp"
#include "tensor_rows.hpp"

using namespace tang;
using bench::normals;
using bench::product_row;
using bench::real;
using bench::Work;

namespace {

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
    if (verb == "clusters") return clusters();
    const Work w = Work::parse(in);
    if (verb == "compile" || verb == "source" || verb == "plan") {
      const run::Options o = options(w);
      const auto d = run::derive(w.graph(), o);
      for (auto& l : d.kernels.kernels)
        std::printf("  %s %s: %s%s\n", l.kernel.name.c_str(), l.label.c_str(), l.schedule.c_str(),
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
    if (verb == "compile-choices") {
      for (auto& [text, s] : choices(w, in)) try {
          run::Options o = w.options();
          o.schedule = s;
          compiler_->compile(run::cuda_source(run::derive(w.graph(), o), o.target), "sm_90a");
        } catch (const Error& e) { std::printf("  %s: %s\n", text.c_str(), e.what()); }
      return;
    }
    if (!gpu_) throw Error({}, "no GPU", {}, "compile only");
    std::printf("%s", line.c_str());
    if (verb == "choices") {
      for (auto& [text, s] : choices(w, in)) try {
          schedule_ = s, timed_.clear();
          std::printf("\n  %-70s", text.c_str());
          check(w), time(w, 10);
        } catch (const Error& e) { std::printf("  %s", e.what()); }
      schedule_ = {}, timed_.clear();
      std::printf("\n");
      return;
    }
    int runs = 10;
    std::string folder;
    if (early_ != (verb != "time-late")) early_ = !early_, timed_.clear();
    if (verb == "time" || verb == "time-late") in >> runs;
    if (verb == "dump") in >> folder;
    (verb == "check"    ? check(w)
     : verb == "verify" ? verify(w)
     : verb == "parts"  ? parts(w)
     : verb == "dump"   ? dump(w, folder)
                        : time(w, in ? runs : 10));
    std::printf("\n");
  }

private:
  // The lines of a compiler's log that condemn a kernel, and its registers.
  static void report(const std::string& log) {
    std::istringstream in(log);
    for (std::string line; std::getline(in, line);)
      if (line.find("C75") != std::string::npos || line.find("entry function") != std::string::npos ||
          line.find("registers") != std::string::npos ||
          (line.find("spill") != std::string::npos &&
           line.find(" 0 bytes spill stores") == std::string::npos))
        std::printf("    %s\n", line.c_str());
  }

  // Workgroups of each size of cluster that run at once, where one fills a processor.
  void clusters() {
    if (!gpu_) throw Error({}, "no GPU", {}, "run it where one is");
    std::printf("clusters");
    const std::string text = "extern \"C\" __global__ void k() {}";
    const auto module = gpu_->load(compiler_->compile(text, "sm_90a"));
    for (int c = 1; c <= 8; ++c)
      std::printf(" %d:%lld", c, static_cast<long long>(gpu_->resident(module->function("k", 200000), c, 384, 200000)));
    std::printf("\n");
  }

  // Kernels whose labels hold a told word loop over blocks of the told size.
  static run::Options options(const Work& w) {
    run::Options o = w.options();
    o.schedule.pieces = w.pieces();
    if (w.block()) o.operands = w.element;
    if (w.told.empty() || w.block() || w.blocks()) return o;
    for (auto& [label, loop] : w.told) // results that workgroups add to, in any order
      if (label == "joint")
        for (const char* result : {"dq", "dk", "dv"}) o.schedule.groups[result].joint = true;
    const auto d = run::derive(w.graph(), o);
    for (auto& l : d.kernels.kernels)
      for (auto& [label, loop] : w.told) {
        if (!l.roles || l.label.find(label) == std::string::npos) continue;
        const plan::Group& group = d.plan.steps[size_t(l.step)].group;
        for (auto& m : group.members) {
          auto& f = o.schedule.groups[schedule::key(*d.plan.graph, m.node)];
          f.roles = *l.roles;
          if (group.members.size() > 2) f.joint = true; // as it is
          int widest = -1;
          for (size_t a = 0; a < group.extent.size(); ++a)
            if (group.role[a] == plan::Role::looped &&
                (widest < 0 || group.extent[a] > group.extent[size_t(widest)]))
              widest = int(a);
          f.tile[widest] = loop % 1000;
          f.roles->lag = int(loop / 1000 % 10);
          if (loop / 10000 == 2) f.roles->producer_registers = 24, f.roles->math_registers = 240;
          if (loop / 10000 == 3)
            f.roles->math = 3, f.roles->producer_registers = 32, f.roles->math_registers = 160;
        }
      }
    return o;
  }

  static std::vector<std::pair<std::string, schedule::Schedule>> choices(const Work& w, std::istream& in) {
    constexpr int most_split = 4;
    size_t most = 100;
    std::string word;
    in >> most >> word;
    const run::Options o = w.options();
    const run::Derivation d = run::derive(w.graph(), o);
    ir::Graph g = *d.plan.graph;
    std::vector<std::pair<std::string, schedule::Schedule>> out;
    for (auto& step : d.plan.steps) {
      const ir::NodeId id = step.group.members.at(0).node;
      if (!g[id].comp() || !g[id].comp()->monoid) continue;
      const std::string key = schedule::key(g, id);
      auto all = lower::tensor_choices(g, d.plan, step.group, lower::choose(g, step.group, {}, o.target), {},
                                       o.target);
      if (!all) throw Error({}, "no candidates", {{all.why(), {}}}, "give a product");
      int split = 0;
      for (auto& c : *all) {
        const bool wanted = word == "alone" ? c.roles.cluster == 1 : c.text.find(word) != std::string::npos;
        if (!wanted || (c.roles.split > 1 && ++split > most_split)) continue;
        schedule::Schedule s;
        schedule::GroupFields& f = s.groups[key];
        f.roles = c.roles, f.vectors = 1;
        for (size_t a = 0; a < c.tile.size(); ++a) f.tile[int(a)] = c.tile[a];
        if (!w.attends() || w.subgroups()) {
          char says[40];
          std::snprintf(says, sizeof says, " says %.5f", 1e3 * c.seconds);
          if (out.size() < most) out.emplace_back(c.text + says, s);
          continue;
        }
        for (int n = 0; n < 6; ++n) {
          f.roles->polynomial = n;
          out.emplace_back(c.text + " of 8: " + std::to_string(n), s);
        }
        return out;
      }
    }
    return out;
  }

  std::shared_ptr<run::CudaProgram> program(const Work& w, bool guards) {
    run::Options o = options(w);
    if (!schedule_.groups.empty()) o.schedule = schedule_;
    o.guards = guards;
    auto p = std::make_shared<run::CudaProgram>(w.graph(), *compiler_, gpu_, o, "sm_90a", early_);
    data_.clear();
    if (w.block()) fill_block(w, *p);
    for (auto& name : w.operands()) {
      data_[name] = normals(size_t(p->elements(name)), w.element, uint64_t(17 + name[0]));
      p->write(name, data_[name].data());
    }
    if (w.blocks()) {
      for (char side : {'a', 'b'}) {
        const int64_t steps = w.k / w.blocks(), lines = side == 'a' ? w.m : w.n / w.blocks();
        std::vector<float> scales(size_t(steps * lines));
        for (int64_t s = 0; s < steps; ++s) // a's rows lie next to each other, b's blocks of terms
          for (int64_t x = 0; x < lines; ++x)
            scales[size_t(side == 'a' ? s * lines + x : x * steps + s)] = Work::scale(side, s, x);
        p->write(std::string("s") + side, scales.data());
      }
    } else if (w.scaled()) {
      const float a = float(Work::scale_a), b = float(Work::scale_b);
      p->write("sa", &a), p->write("sb", &b);
    }
    if (w.mask == "alibi") {
      std::vector<float> slopes;
      for (int64_t h = 0; h < w.heads; ++h) slopes.push_back(float(w.slope(h)));
      p->write("slopes", slopes.data());
    }
    if (w.mask == "t5") {
      std::vector<float> table;
      for (int64_t x = 0; x < Work::buckets * w.heads; ++x)
        table.push_back(Work::bias(x / w.heads, x % w.heads));
      p->write("table", table.data());
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

  // Rows and gradients as they are, weights that keep the size of what they multiply.
  void fill_block(const Work& w, run::CudaProgram& p) {
    const ir::Graph g = w.graph();
    for (auto& n : g.nodes) {
      auto* x = n.input();
      if (!x) continue;
      std::vector<uint8_t>& data = data_[n.name];
      data = normals(size_t(p.elements(n.name)), x->format, hash_of(n.name));
      if (n.name == "cos" || n.name == "sin") {
        std::vector<double> v(size_t(p.elements(n.name)));
        const int64_t pairs = x->shape[1].value();
        for (int64_t i = 0; i < int64_t(v.size()); ++i) {
          const double angle = double(i / pairs) * std::pow(10000.0, -double(i % pairs) / double(pairs));
          v[size_t(i)] = ir::rounded(n.name == "cos" ? std::cos(angle) : std::sin(angle), x->format);
        }
        run::write(data.data(), x->format, v);
      }
      if (n.name[0] == 'w') {
        const bool norm = x->shape.size() == 1;
        std::vector<double> v(size_t(p.elements(n.name)));
        for (size_t i = 0; i < v.size(); ++i) {
          const double z = real(data, int64_t(i), x->format);
          v[i] = ir::rounded(norm ? 1 + z / 8 : z / std::sqrt(double(x->shape[1].value())), x->format);
        }
        run::write(data.data(), x->format, v);
      }
      p.write(n.name, data.data());
    }
  }

  // As it is timed, kernels beside each other; back to back: counters and barriers are as they were.
  void run_twice(run::CudaProgram& p) {
    p.port(p.derivation().plan.graph->outputs.at(0).port); // binds what is not bound yet
    const auto g = gpu_->capture([&] { p.run(), p.run(); });
    g->run();
    gpu_->wait();
  }

  // A block's inputs and results as files, for a judge that knows the function: NAME.bin as it lies.
  void dump(const Work& w, const std::string& folder) {
    auto p = program(w, true);
    const ir::Graph& g = *p->derivation().plan.graph;
    for (auto& o : g.outputs) p->memory(o.name)->poison();
    p->run();
    std::map<std::string, std::vector<uint8_t>> alone; // by kernels one after another
    for (auto& o : g.outputs) {
      alone[o.name].resize(size_t(p->elements(o.name) * run::bytes_of(w.element)));
      p->read(o.name, alone[o.name].data());
      p->memory(o.name)->poison();
    }
    p->poison_scratch();
    run_twice(*p);
    int64_t bad = 0, other = 0;
    auto file = [&](const std::string& name, const std::vector<uint8_t>& x) {
      std::ofstream(folder + "/" + name + ".bin", std::ios::binary)
          .write(reinterpret_cast<const char*>(x.data()), std::streamsize(x.size()));
    };
    for (auto& [name, x] : data_) file(name, x);
    for (auto& o : g.outputs) {
      std::vector<uint8_t> x(size_t(p->elements(o.name) * run::bytes_of(w.element)));
      p->read(o.name, x.data());
      for (int64_t i = 0; i < p->elements(o.name); ++i) bad += !std::isfinite(real(x, i, w.element));
      other += x != alone[o.name];
      file(o.name, x);
    }
    std::printf("  bad %lld guards %zu other %lld kernels %zu", static_cast<long long>(bad), p->trespass().size(),
                static_cast<long long>(other), p->derivation().kernels.kernels.size());
  }

  void check(const Work& w) {
    auto p = program(w, true);
    p->memory("out")->poison();
    if (w.attends()) p->memory("lse")->poison();
    for (const char* name : {"dq", "dk", "dv"})
      if (w.backward()) p->memory(name)->poison();
    if (w.backward() && w.mask == "t5") p->memory("dtable")->poison();
    run_twice(*p);
    std::vector<uint8_t> out(size_t(p->elements("out") * run::bytes_of(w.result())));
    p->read("out", out.data());
    int64_t bad = 0;
    for (int64_t i = 0; i < p->elements("out"); ++i) bad += !std::isfinite(real(out, i, w.result()));
    std::vector<float> lse;
    if (w.attends()) lse.resize(size_t(p->elements("lse"))), p->read("lse", lse.data());
    const int64_t all = w.result_rows();
    const int samples = !w.attends() && w.flops() / double(all) > 4e7 ? 16 : 64;
    std::mt19937_64 rng(5);
    std::vector<int64_t> rows;
    for (int s = 0; s < samples; ++s)
      rows.push_back(s < 4 ? (s % 2 ? all - 1 - s / 2 : s / 2) % all : int64_t(rng() % uint64_t(all)));
    std::vector<double> num(rows.size()), den(rows.size()), off(rows.size());
    std::vector<std::thread> threads;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned t = 0; t < cores; ++t)
      threads.emplace_back([&, t] {
        for (size_t s = t; s < rows.size(); s += cores)
          w.attends() ? attention_row(w, out, lse, rows[s], num[s], den[s], off[s])
                      : product_row(w, data_, out, rows[s], num[s], den[s]);
      });
    for (auto& t : threads) t.join();
    double n = 0, d = 0, worst = 0;
    for (size_t s = 0; s < rows.size(); ++s)
      w.join(n, num[s]), w.join(d, den[s]), worst = std::max(worst, off[s]), worst = off[s] != off[s] ? 1e9 : worst;
    double error = std::sqrt(n / d);
    if (w.backward()) error = std::max(error, gradients(w, *p, out, lse, bad));
    const auto trespass = p->trespass();
    std::printf("  err %.2e lse %.1e bad %lld guards %zu %s", error, worst, static_cast<long long>(bad),
                trespass.size(), error < w.allowed() && worst < w.allowed() * 100 && !bad && trespass.empty() ? "ok" : "WRONG");
  }

  void verify(const Work& w) {
    run::Options o = run::hopper_options();
    o.guards = true;
    o.schedule.pieces = w.pieces();
    if (w.block()) o.operands = w.element;
    const ir::Graph g = w.graph();
    run::CudaProgram p(g, *compiler_, gpu_, o);
    eval::Inputs in;
    for (auto& n : g.nodes)
      if (auto* x = n.input()) {
        const auto shape = eval::bound(x->shape);
        if (expr::type_of(x->format) == expr::Type::real) {
          const auto data = normals(size_t(eval::volume(shape)), x->format, uint64_t(17 + n.name[0]));
          std::vector<double> v(size_t(eval::volume(shape)));
          const double by = n.name[0] == 'w' && shape.size() > 1 ? 1 / std::sqrt(double(shape[1])) : 1;
          for (size_t i = 0; i < v.size(); ++i)
            v[i] = ir::rounded(by * real(data, int64_t(i), x->format), x->format);
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
      w.judge(e, want, num, den);
    }
    const double want = top + std::log(total);
    off = total ? std::fabs(double(lse[size_t(row)]) - want) : lse[size_t(row)] == -INFINITY ? 0 : 1e9;
  }

  // The relative error of the last head's biases' gradients; `moved`: what the loss gains where a score moves,
  // times the scale of scores.
  double table_gradient(const Work& w, run::CudaProgram& p,
                        const std::function<double(int64_t row, int64_t key)>& moved) {
    std::vector<float> got(size_t(p.elements("dtable")));
    p.read("dtable", got.data());
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::vector<double>> sums(cores, std::vector<double>(size_t(Work::buckets)));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < cores; ++t)
      threads.emplace_back([&, t] {
        for (int64_t i = t; i < w.rows; i += cores)
          for (int64_t b = 0; b < w.batch; ++b)
            for (int64_t j = 0; j < w.keys; ++j)
              sums[t][size_t(Work::bucket(w.position(i) - j))] +=
                  moved((b * w.heads + w.heads - 1) * w.rows + i, j);
      });
    for (auto& t : threads) t.join();
    double num = 0, den = 0;
    for (int64_t b = 0; b < Work::buckets; ++b) {
      double want = 0;
      for (auto& s : sums) want += s[size_t(b)] * std::sqrt(double(w.d));
      const double e = double(got[size_t(b * w.heads + w.heads - 1)]) - want;
      num += e * e, den += want * want;
    }
    const double error = std::sqrt(num / den);
    return error == error ? error : 1e9;
  }

  // The worst relative error of dq, dk and dv on sampled rows; the forward's results, checked themselves, say
  // how rows are normalized.
  double gradients(const Work& w, run::CudaProgram& p, const std::vector<uint8_t>& out,
                   const std::vector<float>& lse, int64_t& bad) {
    constexpr int samples = 24;
    std::map<std::string, std::vector<uint8_t>> got;
    for (const char* name : {"dq", "dk", "dv"}) {
      auto& x = got[name];
      x.resize(size_t(p.elements(name) * run::bytes_of(w.element)));
      p.read(name, x.data());
      for (int64_t i = 0; i < p.elements(name); ++i) bad += !std::isfinite(real(x, i, w.element));
    }
    const auto &q = data_.at("q"), &k = data_.at("k"), &v = data_.at("v"), &dout = data_.at("dout");
    auto dot = [&](const std::vector<uint8_t>& a, int64_t i, const std::vector<uint8_t>& b, int64_t j) {
      double x = 0;
      for (int64_t c = 0; c < w.d; ++c)
        x += real(a, i * w.d + c, w.element) * real(b, j * w.d + c, w.element);
      return x;
    };
    // The weight of a pair, and what the loss loses where its score moves.
    auto pair = [&](int64_t row, int64_t key, double flow) {
      const double s = w.changed(dot(q, row, k, key) / std::sqrt(double(w.d)), row / w.rows % w.heads,
                                 row % w.rows, key % w.keys);
      const double weight = std::exp(s - double(lse[size_t(row)]));
      const double slope = w.mask == "softcap" ? 1 - s * s / (Work::cap * Work::cap) : 1;
      return std::pair(weight, weight * (dot(dout, row, v, key) - flow) * slope / std::sqrt(double(w.d)));
    };
    std::mt19937_64 rng(11);
    std::vector<int64_t> rows, keys;
    const int64_t all_rows = w.batch * w.heads * w.rows, all_keys = w.batch * w.kv * w.keys;
    for (int s = 0; s < samples; ++s) {
      rows.push_back(s < 2 ? s * (all_rows - 1) : int64_t(rng() % uint64_t(all_rows)));
      keys.push_back(s < 2 ? s * (all_keys - 1) : int64_t(rng() % uint64_t(all_keys)));
    }
    double num[3][samples] = {}, den[3][samples] = {};
    auto judge = [&](int which, int s, const char* name, int64_t at, const std::vector<double>& want) {
      for (int64_t c = 0; c < w.d; ++c) {
        const double e = real(got.at(name), at * w.d + c, w.element) - want[size_t(c)];
        w.judge(e, want[size_t(c)], num[which][s], den[which][s]);
      }
    };
    auto sample = [&](int s) {
      std::vector<double> dq(size_t(w.d)), dk = dq, dv = dq;
      auto add = [&](std::vector<double>& to, double by, const std::vector<uint8_t>& from, int64_t i) {
        for (int64_t c = 0; c < w.d; ++c) to[size_t(c)] += by * real(from, i * w.d + c, w.element);
      };
      const int64_t row = rows[size_t(s)], first_key = row / w.rows / w.group() * w.keys;
      const double flow = dot(dout, row, out, row);
      for (int64_t j = w.first(row % w.rows); j < w.last(row % w.rows); ++j)
        add(dq, pair(row, first_key + j, flow).second, k, first_key + j);
      judge(0, s, "dq", row, dq);
      const int64_t key = keys[size_t(s)], j = key % w.keys;
      for (int64_t r = key / w.keys * w.group() * w.rows; r < (key / w.keys + 1) * w.group() * w.rows; ++r) {
        if (j < w.first(r % w.rows) || j >= w.last(r % w.rows)) continue;
        const auto [weight, moved] = pair(r, key, dot(dout, r, out, r));
        add(dv, weight, dout, r), add(dk, moved, q, r);
      }
      judge(1, s, "dk", key, dk), judge(2, s, "dv", key, dv);
    };
    std::vector<std::thread> threads;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned t = 0; t < cores; ++t)
      threads.emplace_back([&, t] {
        for (unsigned s = t; s < samples; s += cores) sample(int(s));
      });
    for (auto& t : threads) t.join();
    double worst = w.mask == "t5" ? table_gradient(w, p, [&](int64_t row, int64_t j) {
      return pair(row, row / w.rows / w.group() * w.keys + j, dot(dout, row, out, row)).second;
    }) : 0;
    for (int x = 0; x < 3; ++x) {
      double n = 0, d = 0;
      for (int s = 0; s < samples; ++s) w.join(n, num[x][s]), w.join(d, den[x][s]);
      const double e = std::sqrt(n / d);
      worst = e == e ? std::max(worst, e) : 1e9;
    }
    return worst;
  }

  // The kernels of a backward alone: all but those of the step that makes the forward's result.
  static std::vector<size_t> backward_kernels(const run::CudaProgram& p) {
    const auto& d = p.derivation();
    ir::NodeId out = 0;
    for (auto& o : d.plan.graph->outputs)
      if (o.name == "out") out = o.port.node;
    std::vector<size_t> kernels;
    for (size_t k = 0; k < d.kernels.kernels.size(); ++k) {
      bool forward = false;
      const plan::Group& g = d.plan.steps[size_t(d.kernels.kernels[k].step)].group;
      for (auto& m : g.members) forward |= m.node == out;
      for (auto& e : g.epilogues) forward |= e.node == out;
      if (!forward) kernels.push_back(k);
    }
    return kernels;
  }

  // A graph of some runs, replayed back to back; the median of twenty replays.
  void time(const Work& w, int runs) {
    constexpr int replays = 20;
    std::string key = w.kind + w.transposes + w.format + w.mask;
    for (auto& [label, loop] : w.told) key += label + std::to_string(loop);
    for (int64_t x : {w.m, w.n, w.k, w.batch, w.heads, w.kv, w.rows, w.keys, w.d, w.height, w.width,
                      w.channels, w.outs, w.taps, w.stride, w.groups})
      key += " " + std::to_string(x);
    if (key != timed_) {
      graph_.reset(), program_.reset();
      program_ = program(w, false);
      program_->run();
      gpu_->wait();
      timed_ = key;
    }
    if (!graph_ || runs != graphed_) {
      const std::vector<size_t> some = w.backward() ? backward_kernels(*program_) : std::vector<size_t>{};
      graph_ = gpu_->capture([&] {
        for (int r = 0; r < runs; ++r) {
          for (size_t k : some) program_->run_kernel(k);
          if (some.empty()) program_->run();
        }
      });
      graphed_ = runs;
    }
    const double t = median(*graph_, runs, replays);
    std::printf("  %.5f ms %.1f TFLOP/s", t * 1e3, w.flops() / t * 1e-12);
  }

  double median(device::CudaGraph& g, int runs, int replays) {
    std::vector<double> s;
    for (int r = 0; r < replays + 3; ++r) {
      void* from = gpu_->mark();
      g.run();
      const double t = gpu_->seconds(from, gpu_->mark()) / runs;
      if (r >= 3) s.push_back(t);
    }
    std::sort(s.begin(), s.end());
    return s[s.size() / 2];
  }

  // Each kernel alone.
  void parts(const Work& w) {
    timed_.clear(), graph_.reset();
    program_ = program(w, false);
    program_->run();
    gpu_->wait();
    const auto& all = program_->derivation().kernels.kernels;
    for (size_t k = 0; k < all.size(); ++k) {
      const auto g = gpu_->capture([&] {
        for (int r = 0; r < 4; ++r) program_->run_kernel(k);
      });
      std::printf(" | %s: %.5f ms (%s)", all[k].label.c_str(), median(*g, 4, 9) * 1e3,
                  all[k].schedule.c_str());
    }
  }

  std::shared_ptr<device::CudaCompiler> compiler_;
  std::shared_ptr<device::Cuda> gpu_;
  schedule::Schedule schedule_;
  bench::Data data_;
  std::string timed_;
  int graphed_ = 0; // runs in the graph
  bool early_ = true;
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
