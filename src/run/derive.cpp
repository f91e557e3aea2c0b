#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "tang/emit/c.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/run/budget.hpp"
#include "tang/run/limits.hpp"
#include "tang/run/matrices.hpp"

namespace tang::run {

Options::Options() : target(target::c_target_of_host(1)) {}

namespace {
// Node `at` has become two, its parts and their join: what the schedule says of it and of the nodes after it, whose keys
// tell what they read, goes with them. The parts are stored, so that they are workgroups of their own.
void carry_fields(const ir::Graph& before, const ir::Graph& after, ir::NodeId at, schedule::Schedule& s) {
  check(after.nodes.size() == before.nodes.size() + 1, "a split makes one node more");
  std::map<std::string, schedule::GroupFields> moved;
  for (ir::NodeId id = at; id < before.nodes.size(); ++id) {
    const auto it = s.groups.find(schedule::key(before, id));
    if (it == s.groups.end()) continue;
    schedule::GroupFields f = std::move(it->second);
    s.groups.erase(it);
    if (id == at) {
      f.split.reset();
      schedule::GroupFields& parts = moved[schedule::key(after, at)];
      parts.stored = true, parts.accumulate = f.accumulate;
    }
    moved[schedule::key(after, id + 1)] = std::move(f);
  }
  s.groups.merge(moved);
}

// Recurrences that can be in chunks of so many steps.
ir::Graph in_chunks(ir::Graph g, int64_t block, rewrite::Trace& trace) {
  if (!block) return g;
  auto done = rewrite::chunk_all(g, block);
  if (!done) return g;
  const rewrite::Rule rule = rewrite::chunk_rule();
  trace.steps.push_back({rule.name, rule.law, std::move(done->what), 0, 0, 0, 0, {}});
  return std::move(done->graph);
}

// Folds that the schedule splits.
ir::Graph split(ir::Graph g, schedule::Schedule& s) {
  for (ir::NodeId id = ir::NodeId(g.nodes.size()); id-- > 0;) {
    const auto it = s.groups.find(schedule::key(g, id));
    if (it == s.groups.end() || it->second.split.value_or(1) < 2) continue;
    auto r = rewrite::split_fold_in(g, id, 0, *it->second.split);
    if (!r)
      throw Error(g[id].where, "the schedule splits '" + it->first + "' in " + std::to_string(*it->second.split),
                  {{r.why(), {}}}, "remove `split` from this group");
    carry_fields(g, r->graph, id, s);
    g = std::move(r->graph);
  }
  return g;
}

// What a temporary holds is dead when its step of the plan ends, unless another one reads it, too: steps share the
// memory, the largest with the largest. With several sets of places the steps take turns.
struct Homes {
  std::map<int, int> of;       // each temporary's
  std::vector<int64_t> bytes;  // of each place
};
Homes share(const std::map<int, std::set<int>>& of_step, const std::vector<int64_t>& bytes, int sets) {
  Homes out;
  std::map<int, int> steps;
  for (auto& [step, used] : of_step)
    for (int n : used) ++steps[n];
  for (auto& [n, many] : steps)
    if (many > 1) out.of[n] = int(out.bytes.size()), out.bytes.push_back(bytes[size_t(n)]);
  std::vector<std::vector<int>> places(static_cast<size_t>(sets)); // of a set, the largest first
  int turn = 0;
  for (auto& [step, used] : of_step) {
    std::vector<int> mine(used.begin(), used.end());
    std::stable_sort(mine.begin(), mine.end(), [&](int a, int b) { return bytes[size_t(a)] > bytes[size_t(b)]; });
    std::vector<int>& set = places[size_t(turn++ % sets)];
    size_t next = 0;
    for (int n : mine) {
      if (out.of.count(n)) continue;
      if (next == set.size()) set.push_back(int(out.bytes.size())), out.bytes.push_back(0);
      const int place = out.of[n] = set[next++];
      out.bytes[size_t(place)] = std::max(out.bytes[size_t(place)], bytes[size_t(n)]);
    }
  }
  return out;
}

// As many sets as keep kernels apart that could run at once, within the bytes that the target grants.
void share_temporaries(lower::Program& p, const target::Target& t) {
  std::map<int, std::set<int>> of_step;
  for (auto& l : p.kernels)
    for (auto& a : l.arguments)
      if (auto* n = std::get_if<int>(&a.what)) of_step[l.step].insert(*n);
  for (auto& l : p.loops)
    if (l.count) of_step[p.kernels[size_t(l.first)].step].insert(l.time);
  Homes places;
  for (int sets = t.beside ? std::max(1, int(of_step.size())) : 1; sets; sets /= 2) {
    places = share(of_step, p.temporaries, sets);
    if (std::accumulate(places.bytes.begin(), places.bytes.end(), int64_t(0)) <= t.beside) break;
  }
  for (auto& l : p.kernels)
    for (auto& a : l.arguments)
      if (auto* n = std::get_if<int>(&a.what)) a.what = places.of.at(*n);
  for (auto& l : p.loops) l.time = l.count ? places.of.at(l.time) : -1;
  p.temporaries = std::move(places.bytes);
}

// False: a kernel's tiles do not fit a workgroup's memory, or it names too much, and the schedule now stores
// what made it so large.
bool plan_and_lower(Derivation& d, const ir::Graph& graph, schedule::Schedule& s, const target::Target& t) {
  d.plan = plan::make_plan(graph, s, t);
  d.kernels = lower::lower(d.plan, s, t);
  for (auto& l : d.kernels.kernels)
    if (int(l.arguments.size()) > t.storage_bindings) {
      pool_temporaries(d.kernels);
      break;
    }
  share_temporaries(d.kernels, t);
  for (auto& l : d.kernels.kernels) {
    if (!t.aliases) merge_places(d.plan, l);
    if (l.roles) continue;
    if (auto k = kernel::try_legalize(l.kernel, t)) l.kernel = std::move(*k);
    else if (store_shared(d.plan, d.plan.steps[size_t(l.step)], s)) return false;
    else l.kernel = kernel::legalize(l.kernel, t); // says why not
  }
  return true;
}

} // namespace

namespace {
std::optional<Error> too_far_off(const Derivation& d, const ir::Graph& g, const Options& o) {
  std::map<std::string, double> predicted;
  if (!o.budget->samples.empty()) predicted = predicted_errors(d, g, o.budget->samples, o.target.workers);
  return over_budget(d, g, o, predicted);
}

Derivation as_told(const ir::Graph& g, const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  Derivation d;
  ir::Graph graph = in_chunks(ir::canonical(g).graph, o.schedule.chunk, d.trace);
  if (o.optimize) {
    rewrite::Optimized best = rewrite::optimize(graph);
    graph = std::move(best.graph);
    d.trace.steps.insert(d.trace.steps.end(), best.trace.steps.begin(), best.trace.steps.end());
    d.trace.refused = std::move(best.trace.refused);
  }
  if (o.target.blocks()) graph = for_matrices(std::move(graph), o);
  schedule::Schedule schedule = o.schedule;
  schedule.alignment = std::max(schedule.alignment, o.target.alignment);
  graph = split(rewrite::for_planning(rewrite::own_formats(graph), o.optimize && o.target.sum_cost > 0), schedule);
  if (o.target.blocks() && o.operands) store_operands(graph, *o.operands, schedule);
  if (!o.target.index64) refuse_wide_inputs(g, o.target);
  while (!plan_and_lower(d, graph, schedule, o.target)) {}
  std::map<std::string, std::string> known; // canonical text -> name
  for (auto& l : d.kernels.kernels) {
    const std::string text = kernel::print(l.kernel) + (l.roles ? l.schedule : "");
    auto [it, fresh] = known.try_emplace(text, "k" + device::digest(text).substr(0, 16));
    l.kernel.name = it->second;
    d.names.push_back(it->second);
  }
  d.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return d;
}
} // namespace

// A budget says how far off results may be: with matrix instructions, products of f32 are then made of as few 16-bit
// pieces as it allows, and are ordinary arithmetic where it allows none.
Derivation derive(const ir::Graph& g, const Options& o) {
  if (o.budget && o.target.blocks() && !o.schedule.pieces)
    for (int pieces : {2, 3}) {
      Options with = o;
      with.schedule.pieces = pieces;
      Derivation d = as_told(g, with);
      const auto& all = d.kernels.kernels;
      if (std::none_of(all.begin(), all.end(), [](auto& l) { return l.pieces > 0; })) break;
      if (!too_far_off(d, g, o)) return d;
    }
  Derivation d = as_told(g, o);
  if (o.budget)
    if (auto e = too_far_off(d, g, o)) throw *e;
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
