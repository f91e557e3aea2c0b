#include "tang/cli/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tang/base/error.hpp"
#include "tang/cli/json.hpp"
#include "tang/cli/programs.hpp"
#include "tang/cli/tool.hpp"
#include "tang/grad/gradient.hpp"
#include "tang/lower/choose.hpp"
#include "tang/models/cases.hpp"
#include "tang/verify/verify.hpp"

namespace tang::cli {

using ir::NodeId;
using schedule::GroupFields;

namespace {
run::Options as_derived(const ir::Graph&, run::Options o) { return o; }

run::Options as_written(const ir::Graph&, run::Options o) {
  o.optimize = false;
  o.schedule = schedule::as_written();
  return o;
}

// Derived, but that every fold is an array.
run::Options arrays(const ir::Graph&, run::Options o) {
  o.schedule.share_contractions = false;
  return o;
}

// Fields for the groups that this target's own schedule makes.
run::Options each_group(const ir::Graph& g, run::Options o,
                        const std::function<void(ir::Graph&, NodeId member, const plan::Group&, const run::Options&, GroupFields&)>& change) {
  const run::Derivation d = run::derive(g, o);
  ir::Graph scratch = *d.plan.graph; // a choice adds terms to its pool
  run::Options out = o;
  for (auto& step : d.plan.steps)
    for (auto& m : step.group.members) change(scratch, m.node, step.group, o, out.schedule.groups[schedule::key(scratch, m.node)]);
  return out;
}

run::Options in_parts(const ir::Graph& g, run::Options o) {
  return each_group(g, std::move(o), [](ir::Graph& scratch, ir::NodeId member, const plan::Group&, const run::Options&, GroupFields& f) {
    f.ways = 3;
    if (const auto& folds = scratch[member].comp()->folds; !folds.empty() && folds[0].value() > 3) f.split = 2;
  });
}

// Blocks that leave a tail almost everywhere; where products want whole register blocks, the smallest of those.
run::Options small_blocks(const ir::Graph& g, run::Options o) {
  return each_group(g, std::move(o), [](ir::Graph& scratch, NodeId, const plan::Group& group, const run::Options& now, GroupFields& f) {
    const lower::Choice c = lower::choose(scratch, group, now.schedule, now.target);
    const bool blocks = !group.shared.empty() || std::any_of(c.members.begin(), c.members.end(), [](auto& m) { return !m.contractions.empty(); });
    const int64_t small = blocks ? std::max(now.target.lanes, 4) : 3;
    if (blocks) f.rows = 4, f.vectors = 1;
    for (size_t a = 0; a < c.tile.size(); ++a)
      if (c.tile[a] > small) f.tile[int(a)] = small;
  });
}

bool is_real(const ir::Graph& g, ir::Port p) { return g.type(p) == expr::Type::real; }

// Outputs weighted by inputs of their own; what is not a number has weight 0 and must do no harm.
Trial with_gradient(Trial t) {
  std::vector<ir::Port> by;
  std::vector<std::string> names;
  for (NodeId id = 0; id < t.graph.nodes.size(); ++id)
    if (t.graph[id].input() && is_real(t.graph, {id, 0})) by.push_back({id, 0}), names.push_back(t.graph[id].name);
  eval::Oracle forward(t.graph, t.inputs);
  std::vector<diff::Seed> seeds;
  const std::vector<ir::Output> outputs = t.graph.outputs;
  for (auto& out : outputs) {
    if (!is_real(t.graph, out.port)) continue;
    const std::string name = "weight of " + out.name;
    seeds.push_back({out.port, ir::Port{t.graph.add({ir::Input{ir::Input::data, t.graph.shape(out.port), ir::Format::f32}, name, {}}), 0}});
    eval::Array w = random_inputs(t.graph, 11).at(name);
    const eval::Array& at = forward.port(out.port);
    for (int64_t k = 0; k < w.size(); ++k)
      if (at.at(k).state != expr::State::present || !std::isfinite(at.at(k).r)) w.r[size_t(k)] = 0;
    t.inputs[name] = std::move(w);
  }
  auto d = diff::gradient(t.graph, seeds, by);
  if (!d) throw Error({}, "the graph has no gradient", {{d.why(), {}}}, "report the graph");
  t.graph = d->graph;
  for (size_t k = 0; k < by.size(); ++k) t.graph.outputs.push_back({d->of[k], "d " + names[k], ir::Format::f32});
  t.graph = ir::canonical(t.graph).graph;
  return t;
}

std::string reason(const Error& e) { return e.headline() + (e.facts().empty() ? "" : ": " + e.facts()[0].text); }

} // namespace

const std::vector<Way>& ways() {
  static const std::vector<Way> all{{"derived", as_derived},   {"as written", as_written}, {"arrays", arrays},
                                    {"in parts", in_parts}, {"small blocks", small_blocks}};
  return all;
}

std::vector<std::string> builder_names() {
  std::vector<std::string> out;
  for (auto& b : cases::builders) out.push_back(b.name);
  return out;
}

std::vector<Trial> trials(const std::string& builder, bool backward) {
  std::vector<Trial> out;
  for (auto& b : cases::builders)
    if (builder == b.name)
      b.run({[&](const ir::Graph& g, eval::Inputs given, double budget) {
        eval::Inputs in = random_inputs(g, 1);
        for (auto& [name, a] : given) in[name] = a;
        Trial t{g, std::move(in), budget};
        out.push_back(backward ? with_gradient(std::move(t)) : std::move(t));
      }});
  return out;
}

void verify_trial(const run::Opened& to, const Trial& t, const Way& way, int threads, Cell& c) {
  const run::Options own = run::options_for(to.target);
  const bool first = way.of == ways()[0].of, any = first || way.of == &as_written;
  std::optional<run::Derivation> d;
  run::Options o;
  try {
    o = way.of(t.graph, own);
    o.guards = true;
    d = run::derive(t.graph, o);
    if (!first && d->names == run::derive(t.graph, own).names) return;
  } catch (const Error& e) { // a changed field may ask for what is not possible, and a target have too little for it
    c.why = reason(e);
    ++(any && e.headline() != "the kernel cannot run on this target" ? c.failed : c.refused);
    return;
  }
  c.kernels += int(d->kernels.kernels.size());
  try {
    run::Program p(std::move(*d), to.backend, o);
    const verify::Report r = verify::verify(p, t.graph, t.inputs, t.budget, threads);
    c.passed += r.verified(), c.failed += r.failed() + int(r.trespass.size());
    c.worst = std::max(c.worst, r.worst());
    for (auto* all : {&r.kernels, &r.outputs})
      for (auto& x : *all)
        if (!x.ok && c.why.empty()) c.why = x.what + " (" + x.schedule + "): error " + std::to_string(x.error) + " " + x.why;
    for (auto& x : r.trespass)
      if (c.why.empty()) c.why = "guard band of " + x;
  } catch (const Error& e) {
    ++c.failed;
    c.why = reason(e);
  }
}

Cell verify_cell(const std::string& target, const run::Opened& to, const std::string& builder, bool backward, const Way& way,
                 int threads) {
  Cell c;
  c.target = target, c.builder = builder, c.way = way.name, c.backward = backward;
  for (auto& t : trials(builder, backward)) verify_trial(to, t, way, threads, c);
  return c;
}

std::string json(const Cell& c) {
  char number[32];
  std::snprintf(number, sizeof number, "%.3e", std::isfinite(c.worst) ? c.worst : 1e30);
  return "{\"target\":" + quoted_json(c.target) + ",\"builder\":" + quoted_json(c.builder) + ",\"way\":" + quoted_json(c.way) + ",\"backward\":" +
         (c.backward ? "true" : "false") + ",\"kernels\":" + std::to_string(c.kernels) + ",\"passed\":" + std::to_string(c.passed) +
         ",\"failed\":" + std::to_string(c.failed) + ",\"refused\":" + std::to_string(c.refused) + ",\"worst\":" + number +
         ",\"why\":" + quoted_json(c.why) + "}";
}

std::vector<std::vector<int>> pairwise(const std::vector<int>& sizes) {
  struct Pair {
    size_t f, g; // factors
    int x, y;    // their values
    auto operator<=>(const Pair&) const = default;
  };
  std::set<Pair> open;
  for (size_t f = 0; f < sizes.size(); ++f)
    for (size_t g = f + 1; g < sizes.size(); ++g)
      for (int x = 0; x < sizes[f]; ++x)
        for (int y = 0; y < sizes[g]; ++y) open.insert({f, g, x, y});
  std::vector<std::vector<int>> rows;
  while (!open.empty()) { // from one open pair, each further factor takes the value that closes most of the open pairs
    std::vector<int> row(sizes.size(), -1);
    const Pair seed = *open.begin();
    row[seed.f] = seed.x, row[seed.g] = seed.y;
    auto closed = [&](size_t f, int x) {
      int n = 0;
      for (size_t g = 0; g < sizes.size(); ++g)
        if (g != f && row[g] >= 0) n += int(open.count(f < g ? Pair{f, g, x, row[g]} : Pair{g, f, row[g], x}));
      return n;
    };
    for (size_t f = 0; f < sizes.size(); ++f) {
      if (row[f] >= 0) continue;
      int best = 0;
      for (int k = 1, shift = int(rows.size()); k < sizes[f]; ++k) { // of equals another one in each row
        const int x = (k + shift) % sizes[f];
        if (closed(f, x) > closed(f, best)) best = x;
      }
      row[f] = best;
    }
    for (size_t f = 0; f < sizes.size(); ++f)
      for (size_t g = f + 1; g < sizes.size(); ++g) open.erase({f, g, row[f], row[g]});
    rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace tang::cli
