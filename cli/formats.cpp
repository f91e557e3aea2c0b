// Narrow formats: what the emulator predicts beside what happens, of every builder and schedule, as a page.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tang/cli/programs.hpp"
#include "tang/cli/tool.hpp"
#include "tang/models/format_cases.hpp"
#include "tang/tune/formats.hpp"

namespace tang::cli {

namespace {
using tune::FormatRow;

struct Tally {
  int rows = 0, decided = 0, failed = 0;
  double least = HUGE_VAL, most = 0; // of measured / predicted, where the prediction decides
};

class Page {
public:
  Page(const Common& c, const run::Opened& to) : c_(c), to_(to) {}

  void graph(const std::string& name, const ir::Graph& g, const eval::Inputs& given, int parts) {
    eval::Inputs in = random_inputs(g, 1);
    for (auto& [n, a] : given) in[n] = a;
    for (bool written : {false, true}) {
      run::Options o = run::options_for(to_.target);
      if (written) o.optimize = false, o.schedule = schedule::as_written();
      const std::string how = written ? "as written" : "derived";
      for (ir::Format f : {ir::Format::f16, ir::Format::bf16}) {
        const run::Derivation d = run::derive(g, o);
        const std::string format = ir::row(f).name;
        each(name, how, "store " + format, g, o, in, tune::narrowed(d, o.schedule, f));
        each(name, how, "accumulate " + format, g, o, in, tune::accumulated(d, o.schedule, f));
        if (parts > 1)
          each(name, how, "accumulate " + format + ", " + std::to_string(parts) + " parts", g, o, in,
               tune::accumulated(d, o.schedule, f, parts));
      }
    }
  }

  const Tally& tally() const { return tally_; }

private:
  void each(const std::string& name, const std::string& how, const std::string& what, const ir::Graph& g, run::Options o,
            const eval::Inputs& in, const schedule::Schedule& s) {
    o.schedule = s;
    try {
      for (auto& r : tune::format_rows(g, o, to_.backend, in, thread_count(c_))) row(name, how, what, r);
    } catch (const Error& e) {
      ++tally_.failed;
      std::printf("| %s | | %s | %s | | | | **failed**: %s |\n", name.c_str(), how.c_str(), what.c_str(), e.headline().c_str());
    }
    std::fflush(stdout);
  }

  void row(const std::string& name, const std::string& how, const std::string& what, const FormatRow& r) {
    ++tally_.rows;
    tally_.failed += !r.ok();
    const bool both = r.predicted > 0 && r.measured > 0;
    if (r.decides() && both) {
      ++tally_.decided;
      tally_.least = std::min(tally_.least, r.measured / r.predicted), tally_.most = std::max(tally_.most, r.measured / r.predicted);
    }
    char ratio[32] = "";
    if (r.decides() && both) std::snprintf(ratio, sizeof ratio, "%.2f", r.measured / r.predicted);
    std::printf("| %s | %s | %s | %s | %.1e | %.1e | %.1e | %s%s |\n", name.c_str(), r.output.c_str(), how.c_str(), what.c_str(), r.predicted,
                r.measured, r.bound, ratio, r.ok() ? "" : " **missed**");
  }

  const Common& c_;
  const run::Opened& to_;
  Tally tally_;
};
} // namespace

int verify_formats(const Common& c, const std::string& target, const std::string& only) {
  const run::Opened to = open_or_throw(c, target);
  Page page(c, to);
  std::printf("# Narrow formats: predicted and measured\n\n"
              "`tang verify --formats --target %s` prints this page: %s.\n\n"
              "Of each program the buffers inside it (`store`), or the states of its folds (`accumulate`, rounded after every term), are\n"
              "f16 or bf16. *Predicted* is the emulator (`run::predicted_errors`) in the order in which the kernels add; *measured* is the\n"
              "device against the f64 oracle on the same inputs; *f32* is the bound of what f32 bodies alone may add for these inputs\n"
              "(`verify::error_bounds`). All are relative to the output's largest value. Where the prediction is at least 4 times that bound\n"
              "the last column is measured / predicted, which must lie in [0.5, 2]; elsewhere the measured error must not exceed prediction\n"
              "and bound together. Rows that fail say so.\n\n"
              "| builder | output | schedule | formats | predicted | measured | f32 | ratio |\n|---|---|---|---|---|---|---|---|\n",
              target.c_str(), to.description.c_str());
  for (auto& x : cases::long_sums)
    if (only.empty() || std::string(x.name).find(only) != std::string::npos) page.graph(x.name, x.graph(), {}, x.parts);
  for (auto& builder : cases::builders) {
    if (!only.empty() && std::string(builder.name).find(only) == std::string::npos) continue;
    int n = 0;
    std::string name = builder.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    builder.run({[&](const ir::Graph& g, eval::Inputs in, double) { page.graph(name + " " + std::to_string(++n), g, in, 1); }});
  }
  const Tally& t = page.tally();
  std::printf("\n%d rows: in %d the formats decide, measured / predicted %.2f to %.2f; %d failed\n", t.rows, t.decided, t.decided ? t.least : 0,
              t.most, t.failed);
  return t.failed ? 1 : 0;
}

} // namespace tang::cli
