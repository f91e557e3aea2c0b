#include "tang/prove/export.hpp"

#include "tang/ir/monoids.hpp"
#include "tang/prove/rule.hpp"

namespace tang::prove {

Exported exported(const std::vector<Compile>& compiles) {
  Exported out;
  std::map<std::string, int> named;
  for (auto& m : ir::all_monoids()) {
    const int copy = ++named[m.name];
    const std::string name = "m_" + m.name + (copy > 1 ? "_" + std::to_string(copy) : "");
    auto file = monoid_file(m, name);
    if (!file) {
      out.refused.push_back("monoid " + name + ": " + file.why());
      continue;
    }
    out.monoids += file->theorems;
    out.files.push_back(std::move(*file));
  }
  for (auto& f : rule_files()) {
    out.rules += f.theorems;
    out.files.push_back(f);
  }
  Fusions fusions = fusions_of(compiles);
  for (auto& f : fusions.files) {
    out.fusions += f.theorems;
    out.files.push_back(std::move(f));
  }
  out.compiles = fusions.compiles;
  out.steps = fusions.steps;
  out.refused.insert(out.refused.end(), fusions.refused.begin(), fusions.refused.end());
  return out;
}

} // namespace tang::prove
