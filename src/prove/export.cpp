#include "tang/prove/export.hpp"

#include "tang/ir/monoids.hpp"
#include "tang/prove/rule.hpp"

namespace tang::prove {

namespace {
constexpr int64_t fast_memory = 32768; // bytes: a first-level cache

std::string count(int n, const char* what) { return std::to_string(n) + " " + what; }
} // namespace

Exported exported(const std::vector<Compile>& compiles) {
  Exported out;
  auto keep = [&](std::vector<File> files) {
    int theorems = 0;
    for (auto& f : files) theorems += f.theorems, out.files.push_back(std::move(f));
    return theorems;
  };
  auto refuse = [&](const std::vector<std::string>& why) {
    out.refused.insert(out.refused.end(), why.begin(), why.end());
  };
  std::map<std::string, int> copies;
  std::vector<ir::MonoidSpec> table = ir::all_monoids();
  for (auto& m : ir::more_proved_monoids()) table.push_back(m);
  for (auto& m : table) {
    const int copy = ++copies[m.name];
    const std::string name = "m_" + m.name + (copy > 1 ? "_" + std::to_string(copy) : "");
    auto file = monoid_file(m, name);
    if (file)
      out.monoids += keep({*file});
    else
      out.refused.push_back("monoid " + name + ": " + file.why());
  }
  out.rules = keep(rule_files());
  std::vector<Compile> all = compiles;
  std::vector<Gradient> gradients;
  for (auto& c : compiles) {
    auto g = gradient_of(c);
    if (!g) {
      out.omitted.push_back("gradient of " + c.name + ": " + g.why());
      continue;
    }
    all.push_back(g->compile);
    gradients.push_back(std::move(*g));
  }
  Eliminations eliminations = eliminations_of(gradients);
  refuse(eliminations.refused);
  Fusions fusions = fusions_of(all);
  refuse(fusions.refused);
  for (auto& step : fusions.too_large)
    out.omitted.push_back("fusion step " + step + ": too large for Coq to compute on");
  Certificates certificates = certificates_of(fusions.optimized, fast_memory);
  for (auto& [why, n] : certificates.unprinted) out.omitted.push_back(count(n, "certificates: ") + why);
  const int e = keep(std::move(eliminations.files)), f = keep(std::move(fusions.files)),
            c = keep(std::move(certificates.files)), k = keep(std::move(certificates.covers));
  out.counts = count(out.monoids, "monoids, ") + count(out.rules, "scalar rules, ") +
               count(f, "fusion theorems (") + count(fusions.steps, "steps of ") +
               count(fusions.compiles, "compiles, ") +
               count(int(gradients.size()), "of all compiles gradients; ") +
               count(fusions.dropped, "dropped bounds certified), ") + count(e, "max eliminations (") +
               count(eliminations.proofs, "of ") + count(eliminations.graphs, "gradients), ") +
               count(c, "certificates (") + count(certificates.bounds, "of ") +
               count(certificates.graphs, "compiles), ") + count(k, "inequalities of best covers");
  return out;
}

} // namespace tang::prove
