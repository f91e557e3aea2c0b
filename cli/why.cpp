// tang why: what binds a kernel, what the best schedule in its space would give, and what was refused.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tang/bound/report.hpp"
#include "tang/cli/measured.hpp"
#include "tang/text/schedule.hpp"
#include "tang/tune/step_floor.hpp"

namespace tang::cli {

run::Options scheduled(const Common&, const Host& h, const ir::Graph& g, const std::string& file,
                       bool locked) {
  if (!file.empty()) return tune::restored(text::parse_schedule(read_text(file), file), g, h.options, locked);
  if (locked) throw Error({}, "--locked without a schedule", {}, "name one: --schedule FILE.tangsched");
  if (h.cache.empty()) return h.options;
  const auto store = open_store(h);
  if (!store) return h.options;
  if (auto r = tune::recalled(g, h.options, *h.compiler, *store)) {
    run::Options o = h.options;
    o.schedule = r->schedule;
    std::fprintf(stderr, "tuned schedule from the cache\n");
    return o;
  }
  return h.options;
}

namespace {
void print(const char* name, const tune::Time& t) {
  std::printf("  %-9s %9.2f us  bound by %s:", name, t.seconds * 1e6, t.binding().name.c_str());
  std::vector<tune::Term> terms = t.terms;
  std::sort(terms.begin(), terms.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  for (auto& x : terms)
    if (x.seconds > 0.005 * t.seconds) std::printf("  %s %.2f", x.name.c_str(), x.seconds * 1e6);
  std::printf("\n");
}

// What the store knows of this very kernel on this machine.
std::string measured(tune::Store* store, const tune::Machine& m, const tune::Candidate& c) {
  if (!store) return "";
  const auto row = store->find("candidate", m.device + " " + c.text);
  if (!row) return "";
  const auto j = nlohmann::json::parse(*row, nullptr, false);
  char s[96];
  if (!j.is_object()) return "";
  std::snprintf(s, sizeof s, "%.2f us [%.2f %.2f]", j.value("median", 0.0) * 1e6, j.value("low", 0.0) * 1e6,
                j.value("high", 0.0) * 1e6);
  return s;
}
} // namespace

int why(const Common& c, const std::string& file, const std::string& kernel) {
  const ir::Graph g = read_graph(file);
  Host h = open_host(c);
  const auto store = open_store(h);
  const tune::Machine m = machine_of(h, store.get(), false);
  const run::Options o = scheduled(c, h, g, "", false);
  const run::Derivation d = run::derive(g, o);
  int shown = 0;
  for (size_t s = 0; s < d.plan.steps.size(); ++s) {
    std::string label, schedule;
    for (auto& l : d.kernels.kernels)
      if (size_t(l.step) == s) label = l.label, schedule += (schedule.empty() ? "" : "; ") + l.schedule;
    if (!kernel.empty() && label.find(kernel) == std::string::npos) continue;
    ++shown;
    std::printf("%zu: %s\n  schedule  %s\n", s, label.c_str(), schedule.c_str());
    const tune::Space space = tune::space_of(d, o, s, m);
    if (space.candidates.empty()) {
      std::printf("  a recurrence: its body's kernels run once a step\n");
      continue;
    }
    const tune::Candidate& now = space.candidates[0];
    print("floor", tune::floor(now.work, m));
    print("estimate", tune::estimate(now.work, m));
    if (const std::string t = measured(store.get(), m, now); !t.empty())
      std::printf("  measured  %s\n", t.c_str());
    std::printf("  space     %zu schedules that differ, %zu changes refused\n", space.candidates.size(),
                space.refused.size());
    const auto best = std::min_element(space.candidates.begin(), space.candidates.end(),
                                       [](auto& a, auto& b) { return a.estimated < b.estimated; });
    std::printf("  best      %.2f us estimated: %s %s\n", best->estimated * 1e6, best->shown.c_str(),
                best == space.candidates.begin() ? "(the one it has)"
                                                 : measured(store.get(), m, *best).c_str());
    for (size_t k = 0; k < space.refused.size() && k < 4; ++k)
      std::printf("  refused   %s\n", space.refused[k].c_str());
  }
  if (kernel.empty()) {
    const tune::StepFloor f = tune::step_floor(*d.plan.graph, m);
    std::printf("all: no implementation is faster\n");
    print("floor", f.time);
  }
  if (!shown)
    throw Error({}, "no kernel is called '" + text::shown(kernel) + "'",
                {{std::to_string(d.plan.steps.size()) + " kernels; tang explain lists them", {}}},
                "name a part of a kernel's label, or none for all");
  for (auto& n : d.plan.notes) std::printf("note: %s\n", n.c_str());
  return 0;
}

} // namespace tang::cli
