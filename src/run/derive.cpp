#include <algorithm>
#include <chrono>

#include "tang/emit/c.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

Options::Options() : target(target::c_target_of_host(1)) {}

Derivation derive(const ir::Graph& g, const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  Derivation d;
  ir::Graph graph = ir::canonical(g).graph;
  if (o.optimize) {
    rewrite::Optimized best = rewrite::optimize(graph);
    graph = std::move(best.graph);
    d.trace = std::move(best.trace);
  }
  schedule::Schedule schedule = o.schedule;
  schedule.alignment = std::max(schedule.alignment, o.target.alignment);
  d.plan = plan::make_plan(rewrite::expose_support(graph), schedule);
  d.kernels = lower::lower(d.plan, schedule, o.target);
  std::map<std::string, std::string> known; // canonical text -> name
  for (auto& l : d.kernels.kernels) {
    l.kernel = kernel::legalize(l.kernel, o.target);
    const std::string text = kernel::print(l.kernel);
    auto [it, fresh] = known.try_emplace(text, "k" + device::digest(text).substr(0, 16));
    l.kernel.name = it->second;
    d.names.push_back(it->second);
  }
  d.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return d;
}

std::string source(const Derivation& d, const Options& o) {
  std::vector<const kernel::Kernel*> once;
  std::map<std::string, bool> seen;
  for (auto& l : d.kernels.kernels)
    if (seen.emplace(l.kernel.name, true).second) once.push_back(&l.kernel);
  emit::COptions c;
  c.lanes = o.target.lanes;
  return emit::c_unit(once, c);
}

} // namespace tang::run
