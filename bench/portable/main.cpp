// Derived f32 programs on one target: each checked in f64 from poisoned memory, then timed; a JSON line a work.
// usage: bench_portable TARGET [--heads N] [--seconds S] [--block ROWS VECTORS] [--memory BYTES] [--cache FOLDER] [--source FOLDER] [work ..]   (works by the first words of their names)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tang/base/hash.hpp"
#include "tang/run/targets.hpp"
#include "works.hpp"

using namespace tang;
using namespace tang::bench;

namespace {
struct Setup {
  std::string target, source;
  int64_t heads = 16;
  double seconds = 0.5;
  int rows = 0, vectors = 0; // of a contraction's register block, where not the target's own
  int64_t memory = 0;        // of a workgroup's tiles, where not the target's own
  run::TargetOptions options;
  std::vector<std::string> wanted;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<float> random_values(size_t n, uint64_t seed) {
  std::vector<float> v(n);
  for (auto& x : v) x = float(int64_t(mix(seed++) >> 40) - (1 << 23)) * 0x1p-24f;
  return v;
}

// Seconds of one run: the medians, least and most of batches that last long enough to time.
struct Time {
  double median = 0, least = 0, most = 0;
};

Time timed(run::Program& p, double seconds) {
  auto batch = [&](int n) {
    const double start = now();
    for (int k = 0; k < n; ++k) p.run();
    p.device().wait();
    return (now() - start) / n;
  };
  batch(1);
  const double one = batch(1);
  const int n = int(std::clamp(0.02 / one, 1.0, 1000.0));
  const double end = now() + seconds;
  std::vector<double> t;
  do t.push_back(batch(n));
  while (t.size() < 3 || (now() < end && t.size() < 15));
  std::sort(t.begin(), t.end());
  return {t[t.size() / 2], t.front(), t.back()};
}

std::string quoted(const std::string& s) { return "\"" + s + "\""; }

void measure(const Setup& s, const run::Opened& to, const Work& w) {
  run::Options o = run::options_for(to.target);
  if (w.how) w.how(o);
  run::Program p(w.graph, to.backend, o);
  if (!s.source.empty()) {
    const device::Unit u = to.backend.print(p.derivation(), o);
    std::ofstream out(s.source + "/" + w.name + ".txt");
    out << u.source;
    for (auto& e : u.entries) out << e.source;
    for (auto& l : p.derivation().kernels.kernels) out << "\n/* " << l.label << "\n" << kernel::print(l.kernel) << "*/\n";
  }
  Arrays in, got;
  uint64_t seed = 1;
  for (auto& n : w.graph.nodes)
    if (n.input()) {
      in[n.name] = random_values(size_t(p.elements(n.name)), seed += 1000003);
      p.write(n.name, in[n.name].data());
    }
  p.poison_scratch();
  for (auto& x : w.graph.outputs) p.memory(x.name)->poison();
  p.run();
  for (auto& x : w.graph.outputs) {
    std::vector<float>& v = got[x.name];
    v.resize(size_t(p.elements(x.name)));
    const size_t each = size_t(w.row ? w.row : int64_t(v.size()));
    for (size_t at = 0; at < v.size(); at += each * size_t(w.step)) p.memory(x.name)->read(&v[at], at * 4, each * 4);
  }
  const double error = w.error(in, got);
  std::string schedule;
  for (auto& l : p.derivation().kernels.kernels) schedule += (schedule.empty() ? "" : "; ") + l.schedule;
  std::printf("{\"work\": %s, \"target\": %s, \"device\": %s, \"kernels\": %zu, \"schedule\": %s, \"error\": %.2e, \"right\": %s", quoted(w.name).c_str(),
              quoted(s.target).c_str(), quoted(to.description).c_str(), p.derivation().kernels.kernels.size(), quoted(schedule).c_str(),
              std::isfinite(error) ? error : 1e30, error <= w.most ? "true" : "false");
  if (error <= w.most) { // a speed only of what is right
    const Time t = timed(p, s.seconds);
    std::printf(", \"ms\": %.5g, \"least\": %.5g, \"most\": %.5g, \"flops\": %.4g, \"bytes\": %.4g", 1e3 * t.median, 1e3 * t.least, 1e3 * t.most,
                w.flops, w.bytes);
  }
  std::printf("}\n");
  std::fflush(stdout);
}
} // namespace

int main(int argc, char** argv) {
  Setup s;
  s.options.compiler.search = device::split_path(std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin");
  if (const char* w = std::getenv("TANG_WEBGPU")) s.options.webgpu = {w};
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&] { return ++i < argc ? std::string(argv[i]) : std::string(); };
    if (a == "--heads") s.heads = std::stoll(value());
    else if (a == "--seconds") s.seconds = std::stod(value());
    else if (a == "--block") s.rows = std::stoi(value()), s.vectors = std::stoi(value());
    else if (a == "--memory") s.memory = std::stoll(value());
    else if (a == "--threads") s.options.threads = std::stoi(value());
    else if (a == "--source") s.source = value();
    else if (a == "--cache") s.options.cache = s.options.compiler.cache = value();
    else if (s.target.empty()) s.target = a;
    else s.wanted.push_back(a);
  }
  if (s.target.empty()) return std::fprintf(stderr, "usage: bench_portable TARGET [work ..]\n"), 2;
  try {
    const auto to = run::open_target(s.target, s.options);
    if (!to) return std::fprintf(stderr, "%s is not here: %s\n", s.target.c_str(), to.why().c_str()), 1;
    run::Opened device = *to;
    if (s.rows) device.target.block_rows = s.rows, device.target.block_vectors = s.vectors;
    if (s.memory) device.target.fast_memory = device.target.near_memory = s.memory;
    for (auto& w : works(s.wanted, s.heads)) {
      try {
        measure(s, device, w);
      } catch (const Error& e) {
        std::printf("{\"work\": %s, \"target\": %s, \"refused\": %s}\n", quoted(w.name).c_str(), quoted(s.target).c_str(),
                    quoted(e.facts().empty() ? e.headline() : e.headline() + ": " + e.facts()[0].text.substr(0, 200)).c_str());
        std::fflush(stdout);
      }
    }
  } catch (const Error& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
