// `tang demo`: naive graphs become derived kernels, run on this CPU, and are checked against the f64 oracle.
#include <cstdio>

#include "tang/cli/programs.hpp"
#include "tang/cli/reference.hpp"
#include "tang/cli/report.hpp"
#include "tang/emit/c.hpp"
#include "tang/verify/verify.hpp"

namespace tang::cli {

namespace {

constexpr double budget = 1e-4;

std::string bytes_text(double b) {
  char s[32];
  if (b < 1e6)
    std::snprintf(s, sizeof s, "%.1f KiB", b / 1024);
  else
    std::snprintf(s, sizeof s, "%.1f MiB", b / (1 << 20));
  return s;
}

// Arrays that the as-written plan stores and the derived one does not, largest first.
std::vector<std::string> never_written(const plan::Plan& naive, const plan::Plan& derived) {
  std::map<std::string, bool> kept;
  for (auto& b : derived.buffers) kept[derived.graph->label(b.of)] = true;
  std::vector<std::pair<double, std::string>> gone;
  for (auto& b : naive.buffers) {
    double n = double(run::bytes_of(b.format));
    for (int64_t e : b.shape) n *= double(e);
    const std::string label = naive.graph->label(b.of);
    if (!kept.count(label) && n >= 1024) gone.push_back({n, label});
  }
  std::sort(gone.rbegin(), gone.rend());
  std::vector<std::string> out;
  for (size_t k = 0; k < gone.size() && k < 3; ++k)
    out.push_back(gone[k].second + " " + bytes_text(gone[k].first));
  return out;
}

void program(const Naive& naive, size_t at, size_t of, const Common& c, Host& h,
             const std::optional<Blas>& blas, Results& results) {
  FILE* say = c.json ? stderr : stdout;
  std::fprintf(say, "[%zu/%zu] %s  %s f32\n", at, of, naive.name.c_str(), naive.size.c_str());
  run::Options plain = h.options;
  plain.optimize = false;
  plain.schedule = schedule::as_written();
  run::Program written(naive.graph, h.compiler, h.cpu, plain),
      derived(naive.graph, h.compiler, h.cpu, h.options);
  ProgramRow row;
  row.name = naive.name;
  row.size = naive.size;
  row.flops = naive.flops;
  row.naive_nodes = naive.graph.nodes.size();
  row.naive_kernels = written.derivation().kernels.kernels.size();
  row.kernels = derived.derivation().kernels.kernels.size();
  row.naive_bytes = double(written.derivation().plan.bytes_moved());
  row.bytes = double(derived.derivation().plan.bytes_moved());
  row.derive_seconds = derived.derivation().seconds;
  row.derivation =
      rewrite::explain(derived.derivation().trace) + "\n" + plan::print(derived.derivation().plan);
  row.never_written = never_written(written.derivation().plan, derived.derivation().plan);
  std::fprintf(say, "      naive %zu nodes, %zu kernels -> derived %zu kernels   moved %s -> %s   %.3f s\n",
               row.naive_nodes, row.naive_kernels, row.kernels, bytes_text(row.naive_bytes).c_str(),
               bytes_text(row.bytes).c_str(), row.derive_seconds);
  std::string gone;
  for (auto& s : row.never_written) gone += (gone.empty() ? "" : ", ") + s;
  if (!gone.empty()) std::fprintf(say, "      never written: %s\n", gone.c_str());

  const eval::Inputs inputs = random_inputs(naive.graph, 1);
  const verify::Report report = verify::verify(derived, naive.graph, inputs, budget, thread_count(c));
  row.error = report.worst();
  row.ok = report.ok();
  int64_t values = 0, unwritten = 0;
  for (auto& k : report.kernels) values += k.values, unwritten += k.unwritten;
  std::fprintf(
      say,
      "      verify vs f64 oracle: max err %.1e, budget %.0e; %lld/%lld values written (NaN canary)   %s\n",
      row.error, budget, static_cast<long long>(values - unwritten), static_cast<long long>(values),
      row.ok ? "PASS" : "FAIL");
  for (auto& k : report.kernels)
    if (!k.ok)
      std::fprintf(say, "      wrong: %s (%s) error %.1e %s\n", k.what.c_str(), k.schedule.c_str(), k.error,
                   k.why.c_str());
  for (auto& k : report.outputs)
    if (!k.ok) std::fprintf(say, "      wrong output: %s error %.1e\n", k.what.c_str(), k.error);
  for (auto& t : report.trespass) std::fprintf(say, "      guard band written: %s\n", t.c_str());
  results.verified += report.verified();
  results.failed += report.failed() + int(report.trespass.size());

  verify::feed(written, naive.graph, inputs);
  verify::feed(derived, naive.graph, inputs);
  row.time = measure([&] { derived.run(); }, 0.06);
  row.naive = measure([&] { written.run(); }, 0.03, 3);
  if (blas) {
    if (const auto library = reference(written, *blas, plain)) {
      row.reference = library->seconds;
      row.products = library->products;
    }
  }
  // Each kernel by itself, in place: what it reads is what the run left there.
  const auto& kernels = derived.derivation().kernels.kernels;
  for (size_t k = 0; k < kernels.size(); ++k) {
    KernelRow one;
    one.program = naive.name;
    one.kernel = kernels[k].label;
    one.schedule = kernels[k].schedule;
    emit::COptions options;
    options.lanes = h.options.target.lanes;
    one.source = emit::c(kernels[k].kernel, options);
    one.bytes =
        double(derived.derivation().plan.bytes_of(derived.derivation().plan.steps[size_t(kernels[k].step)]));
    one.time = measure([&] { derived.run_kernel(k); }, 0.006);
    one.ok = true;
    for (auto& check : report.kernels)
      if (check.kernel == k) {
        one.error = std::max(one.error, check.error);
        one.ok = one.ok && check.ok;
      }
    results.kernels.push_back(std::move(one));
  }
  results.programs.push_back(std::move(row));
}

// How many times faster than the reference; nothing where there is none.
std::string reference_text(const ProgramRow& p) {
  if (p.reference <= 0) return "-";
  char s[32];
  std::snprintf(s, sizeof s, "%.1f*", p.reference / p.time.median);
  return s;
}

void table(const Results& r) {
  std::printf("\n%-32s %-34s %11s %21s %8s %12s %9s %8s %8s  %s\n", "kernel", "schedule", "median",
              "[95% CI]", "x naive", "x reference", "GFLOP/s", "GB/s", "max err", "ok");
  for (auto& p : r.programs) {
    std::printf("%-32s %-34s %11s [%9s %9s] %8.1f %12s %9.1f %8.1f %8.0e  %s\n", p.name.c_str(),
                (std::to_string(p.kernels) + " kernels").c_str(), time_text(p.time.median).c_str(),
                time_text(p.time.low).c_str(), time_text(p.time.high).c_str(), p.naive.median / p.time.median,
                reference_text(p).c_str(), p.flops / p.time.median / 1e9, p.bytes / p.time.median / 1e9,
                p.error, p.ok ? "ok" : "FAIL");
    for (auto& k : r.kernels) {
      if (k.program != p.name) continue;
      std::string name = "  " + k.kernel;
      if (name.size() > 32) name = name.substr(0, 29) + "...";
      std::printf("%-32s %-34s %11s [%9s %9s] %8s %12s %9s %8.1f %8.0e  %s\n", name.c_str(),
                  k.schedule.substr(0, 34).c_str(), time_text(k.time.median).c_str(),
                  time_text(k.time.low).c_str(), time_text(k.time.high).c_str(), "", "", "",
                  k.bytes / k.time.median / 1e9, k.error, k.ok ? "ok" : "FAIL");
    }
  }
}

} // namespace

int demo(const Common& c, int64_t scale) {
  const double start = device::Cpu::seconds();
  Host h = open_host(c);
  Results r;
  r.host = "c target: " + std::to_string(h.options.target.lanes) + " f32 lanes, " +
           std::to_string(h.options.target.workers) + " threads, " + h.compiler->path();
  FILE* say = c.json ? stderr : stdout;
  std::fprintf(say, "tang 0.1.0   %s   seed 1   cache %s\n\n", r.host.c_str(),
               h.cache.empty() ? "(none)" : h.cache.c_str());
  const std::vector<Naive> programs = demo_programs(scale);
  const auto blas = Blas::find(thread_count(c));
  if (blas) r.reference = "the program as written, its matrix products by " + blas->name();
  for (size_t k = 0; k < programs.size(); ++k) program(programs[k], k + 1, programs.size(), c, h, blas, r);
  r.seconds = device::Cpu::seconds() - start;
  size_t derived = 0;
  for (auto& p : r.programs) derived += p.kernels;
  write_text(c.out + "/results.json", as_json(r));
  write_text(c.out + "/report.html", as_html(r));
  write_text(c.out + "/trace.json", as_trace(r));
  if (c.json) {
    std::printf("%s\n", as_json(r).c_str());
  } else {
    table(r);
    std::printf("%s\n",
                blas ? ("* " + r.reference + ", the other kernels as written; - where it has none").c_str()
                     : "x reference needs libopenblas, which was not found");
    std::printf(
        "\nsummary  %zu programs, %zu kernels derived, 0 hand-written, %d/%d results verified, %.1f s%s\n",
        r.programs.size(), derived, r.verified, r.verified + r.failed, r.seconds,
        h.compiler->runs() ? " (kernels are cached for the next run)" : "");
    std::printf("wrote    %s/  report.html  results.json  trace.json (open in ui.perfetto.dev)\n",
                c.out.c_str());
    std::printf("next     make tang     build/tang explain examples/attention.tang     build/tang verify examples/moe.tang     "
                "edit an example and run it again\n");
  }
  return r.failed ? 1 : 0;
}

} // namespace tang::cli
