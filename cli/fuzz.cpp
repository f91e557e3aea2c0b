// tang fuzz: random graphs on several targets against the oracle.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>

#include "tang/cli/json.hpp"
#include "tang/cli/tool.hpp"
#include "tang/fuzz/campaign.hpp"
#include "tang/fuzz/mutate.hpp"

namespace tang::cli {

namespace {
std::string json(const fuzz::Summary& s) {
  std::string out = "{\"schema\":\"tang.fuzz/1\",\"seconds\":" + std::to_string(s.seconds) +
                    ",\"values\":" + std::to_string(s.values) + ",\"open\":" + std::to_string(s.open);
  auto table = [&](const char* name, const std::map<std::string, int64_t>& m) {
    out += std::string(",\"") + name + "\":{";
    bool first = true;
    for (auto& [k, v] : m) out += (first ? "" : ",") + quoted_json(k) + ":" + std::to_string(v), first = false;
    out += "}";
  };
  table("cases", s.cases), table("rules", s.fired), table("kinds", s.kinds);
  out += ",\"findings\":[";
  for (size_t k = 0; k < s.findings.size(); ++k) {
    const fuzz::Finding& f = s.findings[k];
    out += std::string(k ? "," : "") + "{\"seed\":" + std::to_string(f.seed) +
           ",\"target\":" + quoted_json(f.target) + ",\"kind\":" + quoted_json(f.kind) + ",\"what\":" + quoted_json(f.what) +
           ",\"choices\":" + quoted_json(fuzz::words(f.choices)) + ",\"file\":" + quoted_json(f.file) + "}";
  }
  return out + "]}";
}
} // namespace

int fuzz_targets(const Common& c, const FuzzArguments& a) {
  fuzz::Settings s;
  s.seed = a.seed;
  s.skip = a.skip;
  s.limit = a.limit;
  s.seconds = a.seconds;
  s.cases = a.cases;
  s.targets = a.targets;
  s.shrink = !a.no_shrinking;
  s.reach.templates = !a.no_templates;
  s.batch = a.batch;
  s.in_memory = a.compiler == "tcc";
  s.folder = c.out;
  if (!s.folder.empty()) mkdir(s.folder.c_str(), 0777);
  s.opening = target_options(c);
  s.opening.compiler.cache = s.opening.cache = ""; // no kernel comes twice
  if (a.mutants) {
    std::vector<fuzz::Subject> subjects;
    for (uint64_t k = 0; k < 60; ++k)
      if (auto subject = fuzz::subject_of(a.seed * 1000 + k)) subjects.push_back(std::move(*subject));
    const auto m = fuzz::mutate(subjects, a.mutants);
    std::printf("%s", fuzz::text(m).c_str());
    return fuzz::killed(m) >= 0.98 ? 0 : 1;
  }
  if (!a.choices.empty() || !a.file.empty()) {
    int found = 0;
    for (auto& target : s.targets) {
      fuzz::Choices choices(fuzz::sequence(a.choices));
      const fuzz::Case k = a.file.empty() ? fuzz::generate(choices, fuzz::reach_on(target, s))
                                          : fuzz::case_of(read_text(a.file), a.file);
      if (!a.file.empty()) need_output(k.graph, a.file);
      if (a.show) std::printf("%s", fuzz::repro(k, {0, target, "none", "as drawn", fuzz::sequence(a.choices), ""}).c_str());
      for (auto& f : fuzz::try_case(k, target, s)) {
        std::printf("%s", fuzz::repro(k, {0, target, f.kind, f.what, fuzz::sequence(a.choices), ""}).c_str());
        ++found;
      }
    }
    std::printf("1 case: %s\n", found ? "found" : "nothing found");
    return found ? 1 : 0;
  }
  const fuzz::Report told = [&](const fuzz::Finding& f) {
    if (!c.json)
      std::printf("%s on %s, seed %llu: %s\n  --choices %s\n", f.kind.c_str(), f.target.c_str(),
                  static_cast<unsigned long long>(f.seed), f.what.c_str(), fuzz::words(f.choices).c_str()),
          std::fflush(stdout);
  };
  const fuzz::Summary sum = a.jobs > 1 ? fuzz::fuzz_side_by_side(s, a.jobs, told) : fuzz::fuzz(s, told);
  std::printf("%s", c.json ? (json(sum) + "\n").c_str() : fuzz::text(sum).c_str());
  return sum.findings.empty() ? 0 : 1;
}

} // namespace tang::cli
