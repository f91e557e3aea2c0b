#include <algorithm>
#include <chrono>
#include <set>

#include "tang/emit/c.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

Options::Options() : target(target::c_target_of_host(1)) {}

namespace {
// Folds that the schedule splits, users first: what a node reads keeps its key. The parts are stored, so that they
// are workgroups of their own.
ir::Graph split(ir::Graph g, schedule::Schedule& s) {
  for (ir::NodeId id = ir::NodeId(g.nodes.size()); id-- > 0;) {
    const auto it = s.groups.find(schedule::key(g, id));
    if (it == s.groups.end() || it->second.split.value_or(1) < 2) continue;
    auto r = rewrite::split_fold_in(g, id, 0, *it->second.split);
    if (!r)
      throw Error(g[id].where, "the schedule splits '" + it->first + "' in " + std::to_string(*it->second.split),
                  {{r.why(), {}}}, "remove `split` from this group");
    std::set<uint64_t> known;
    for (auto& n : g.nodes) known.insert(n.hash);
    g = std::move(r->graph);
    id = 0;
    while (known.count(g[id].hash)) ++id; // operands come first: the first new node is the parts
    s.groups[schedule::key(g, id)].stored = true;
    id = ir::NodeId(g.nodes.size()); // ids moved; the joined fold has another key
  }
  return g;
}
} // namespace

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
  graph = split(rewrite::expose_support(graph), schedule);
  d.plan = plan::make_plan(graph, schedule, o.target);
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
