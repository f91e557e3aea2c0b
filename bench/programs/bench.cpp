#include "bench.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace bench {

double Samples::at(double q) const {
  if (t.empty()) return 0;
  std::vector<double> s = t;
  std::sort(s.begin(), s.end());
  return s[size_t(q * double(s.size() - 1) + 0.5)];
}

Bench::Bench(int threads_, bool quick_, std::string cache_) : threads(threads_), quick(quick_), cache(std::move(cache_)) {
  device::CompilerOptions o;
  o.search = {"/usr/local/bin", "/usr/bin", "/bin"};
  o.cache = cache;
  compiler = std::make_shared<device::Compiler>(o);
  cpu = std::make_shared<device::Cpu>(threads);
  openblas_set_num_threads(threads);
}
run::Options Bench::options() const {
  run::Options o;
  o.target = target::c_target_of_host(threads);
  return o;
}
namespace {
void rest(double seconds) {
  timespec t{time_t(seconds), long((seconds - double(time_t(seconds))) * 1e9)};
  nanosleep(&t, nullptr);
}
}  // namespace

void Bench::interleave(Row& row, const std::function<void()>& ours, const std::function<void()>& theirs, int rounds, double seconds) const {
  row.threads = threads;
  auto turn = [&](const std::function<void()>& f, Samples& s) {
    f();  // caches and threads warm
    const double from = device::Cpu::seconds();
    for (int n = 0; n < 3 || (device::Cpu::seconds() - from < 0.02 && n < 200); ++n) {
      const double t = device::Cpu::seconds();
      f();
      s.t.push_back(device::Cpu::seconds() - t);
      if (device::Cpu::seconds() - from > 0.3) break;
    }
  };
  auto peer = [&] {
    turn(theirs, row.theirs);
    if (threads > 1) rest(0.06);
  };
  if (quick) rounds = 2, seconds = 0.1;
  const double start = device::Cpu::seconds();
  for (int r = 0; r < rounds || device::Cpu::seconds() - start < seconds; ++r) {
    if (r % 2 && theirs) peer();
    turn(ours, row.ours);
    if (r % 2 == 0 && theirs) peer();
  }
}
void Bench::add(Row r) {
  std::printf("%-9s %-34s t%d  best %9.3f ms  median %9.3f", r.section.c_str(), r.name.c_str(), r.threads, r.ours.best() * 1e3, r.ours.median() * 1e3);
  if (!r.unit.empty()) std::printf("  %7.1f %s", r.rate, r.unit.c_str());
  if (!r.peer.empty()) std::printf("  %s %7.1f", r.peer.c_str(), r.peer_rate);
  if (r.ratio != 0) std::printf("  ratio %.3f (medians %.3f)", r.ratio, r.ratio_median);
  if (r.least) std::printf(" >= %.2f %s", *r.least, r.ratio >= *r.least ? "ok" : "MISSED");
  if (r.most_seconds) std::printf("  median <= %.2f us %s", *r.most_seconds * 1e6, r.ours.median() <= *r.most_seconds ? "ok" : "MISSED");
  if (r.max_error) std::printf("  error %.1e", *r.max_error);
  for (auto& [k, v] : r.more) std::printf("  %s %.4g", k.c_str(), v);
  std::printf("  [%s]\n", r.schedule.c_str());
  std::fflush(stdout);
  rows.push_back(std::move(r));
}

void fill(float* p, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = float(int32_t(seed) >> 8) * 0x1p-24f;
  }
}
void sgemm(int64_t n, const float* a, const float* b, float* c) {
  cblas_sgemm(101, 111, 111, int(n), int(n), int(n), 1, a, int(n), b, int(n), 0, c, int(n));
}
std::string schedules(const run::Program& p) {
  std::string s;
  for (auto& k : p.derivation().kernels.kernels) s += (s.empty() ? "" : "; ") + k.schedule;
  return s;
}

}  // namespace bench
