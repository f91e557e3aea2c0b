#include "tang/grad/gradient.hpp"

#include "tang/grad/adjoint.hpp"
#include "tang/grad/laws.hpp"
#include "tang/grad/step.hpp"
#include "tang/grad/tangent.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/measure.hpp"

namespace tang::diff {

namespace {
// A graph with every absence in domains and every absorbing fold in definition form, its ports tracked.
struct Prepared {
  Graph graph; // its own outputs first
  std::vector<std::vector<Port>> now;
  rewrite::Trace trace;
};

// Ports are tracked as outputs.
void track(Graph& g, std::vector<std::vector<Port>>& ports) {
  for (auto& row : ports)
    for (Port p : row)
      g.outputs.push_back({p, "\1 " + std::to_string(g.outputs.size()), ir::default_format(g.type(p))});
}

void tracked(const Graph& g, size_t first, std::vector<std::vector<Port>>& ports) {
  for (auto& row : ports)
    for (Port& p : row) p = g.outputs[first++].port;
}

// Every recurrence of more steps in segments, its ports tracked.
void mine(Prepared& p, int64_t segment) {
  if (segment <= 0) return;
  const size_t own = p.graph.outputs.size();
  std::vector<Port> long_ones;
  for (NodeId id = 0; id < p.graph.nodes.size(); ++id)
    if (const ir::Recur* r = p.graph[id].recur(); r && p.graph.ports(id))
      if (!r->steps.is_constant() || r->steps.value() > segment) long_ones.push_back({id, 0});
  p.now.push_back(long_ones);
  for (size_t k = 0; k < long_ones.size(); ++k) {
    track(p.graph, p.now);
    auto mined = rewrite::strip_mine(p.graph, p.now.back()[k].node, segment);
    if (!mined) throw Refused{"segments of " + std::to_string(segment) + ": " + mined.why()};
    p.graph = std::move(mined->graph);
    tracked(p.graph, own, p.now);
    p.graph.outputs.resize(own);
    const rewrite::Rule rule = rewrite::strip_mine_rule();
    p.trace.steps.push_back({rule.name, rule.law, std::move(mined->what), 0, 0, 0, 0, {}});
  }
  p.now.pop_back();
}

struct InChunks {
  Graph graph;
  std::vector<rewrite::Step> steps; // of the trace
};

// What reads states becomes scores before it is differentiated: the gradient of a sum of sums would visit
// every pair of their terms.
InChunks scores_of(rewrite::Rewritten chunked) {
  rewrite::Optimized scores = rewrite::optimize(chunked.graph, {rewrite::factor(), rewrite::swap_folds()});
  const rewrite::Rule rule = rewrite::chunk_rule();
  InChunks out{std::move(scores.graph), {{rule.name, rule.law, std::move(chunked.what), 0, 0, 0, 0, {}}}};
  for (auto& s : scores.trace.steps) out.steps.push_back(std::move(s));
  return out;
}

// The first recurrence whose chunks evaluate few more terms than its steps do: they are products of matrices,
// and no state is remembered. Elsewhere (states not larger than a chunk's decays, sums that are fed back) the
// steps are cheaper.
std::optional<InChunks> worth_chunks(const Graph& g) {
  constexpr int64_t block = 32;
  constexpr double most = 1.75; // of the steps' terms
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const ir::Recur* r = g[id].recur();
    if (!r || !r->steps.is_constant()) continue;
    auto chunked = rewrite::chunk(g, id, block);
    if (!chunked) continue;
    const double own = double(r->steps.value()) * rewrite::terms_of(*r->step);
    InChunks out = scores_of(std::move(*chunked));
    if (rewrite::terms_of(out.graph) - rewrite::terms_of(g) + own <= most * own) return out;
  }
  return {};
}

// Recurrences that are affine in their states in chunks; the others stay.
void chunk(Prepared& p, int64_t block) {
  if (!block) return;
  const size_t own = p.graph.outputs.size();
  track(p.graph, p.now);
  bool changed = false;
  auto take = [&](InChunks c) {
    p.graph = std::move(c.graph);
    for (auto& s : c.steps) p.trace.steps.push_back(std::move(s));
    changed = true;
  };
  if (block > 0) {
    if (auto c = rewrite::chunk_all(p.graph, block)) take(scores_of(std::move(*c)));
  } else {
    while (auto c = worth_chunks(p.graph)) take(std::move(*c));
  }
  if (changed) tracked(p.graph, own, p.now);
  p.graph.outputs.resize(own);
}

Prepared prepare(const Graph& g, const std::vector<Port>& roots) {
  Prepared out;
  Graph start = g;
  std::vector<char> live(g.nodes.size(), 0);
  for (auto& o : g.outputs) live[o.port.node] = 1;
  for (Port p : roots) live[p.node] = 1;
  for (NodeId id = NodeId(g.nodes.size()); id-- > 0;)
    if (live[id])
      for (Port p : ir::sources(g, id)) live[p.node] = 1;
  out.now.resize(g.nodes.size());
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (live[id])
      for (uint32_t k = 0; k < g.ports(id); ++k) out.now[id].push_back({id, k});
  track(start, out.now);
  const std::vector<rewrite::Rule> rules{rewrite::absence_to_domain(), rewrite::expose_support_rule(),
                                         rewrite::definition_form_rule()};
  rewrite::Optimized ready = rewrite::optimize(start, rules);
  out.graph = std::move(ready.graph);
  out.trace = std::move(ready.trace);
  tracked(out.graph, g.outputs.size(), out.now);
  out.graph.outputs.resize(g.outputs.size());
  return out;
}

Port ones(Graph& g, const std::vector<Extent>& shape) {
  Comp n;
  n.points = shape;
  n.lift = {g.pool.literal(1.0)};
  n.outs = {every_axis(shape.size())};
  return {g.add({std::move(n), "one", {}}), 0};
}

// Operands first again, and only what is needed.
void finish(Prepared& p, const std::map<Port, Port>& instead, std::vector<Port> of, Derivative& out) {
  Graph& g = p.graph;
  const size_t own = g.outputs.size();
  std::vector<std::vector<Port>> wanted{std::move(of)};
  track(g, wanted);
  const size_t forward = g.outputs.size();
  track(g, p.now);
  ir::redirect(g, instead);
  out.graph = ir::canonical(g).graph;
  tracked(out.graph, own, wanted);
  tracked(out.graph, forward, p.now);
  out.graph.outputs.resize(own);
  out.of = std::move(wanted[0]);
  out.now = std::move(p.now);
  out.trace = std::move(p.trace);
}
} // namespace

Result<Derivative> gradient(const Graph& g, const std::vector<Seed>& seeds, const std::vector<Port>& wrt,
                            const Options& options) {
  std::vector<Port> roots = wrt;
  for (auto& s : seeds) {
    roots.push_back(s.of);
    if (s.with) roots.push_back(*s.with);
  }
  Prepared p = prepare(g, roots);
  auto now = [&](Port x) { return p.now[x.node][x.port]; };
  Derivative out;
  std::set<Port> wanted;
  std::vector<Port> of;
  try {
    chunk(p, options.chunk);
    mine(p, options.segment);
    for (Port x : wrt) wanted.insert(now(x));
    Adjoints a(p.graph, wanted, options.eliminate ? &out.proofs : nullptr);
    std::vector<std::pair<Port, Port>> start;
    for (auto& s : seeds) {
      check(!s.with || g.shape(*s.with) == g.shape(s.of), "a seed of another shape");
      start.push_back({now(s.of), s.with ? now(*s.with) : Port{}});
    }
    for (size_t k = 0; k < seeds.size(); ++k)
      a.add(start[k].first, seeds[k].with ? start[k].second : ones(p.graph, g.shape(seeds[k].of)));
    a.run();
    for (Port x : wrt) of.push_back(a.bar(now(x)));
    for (auto& proof : out.proofs) {
      const std::string name = "no_gradient_of_a_stabilizing_max";
      rewrite::Step step{name, law_of(name), {print(proof)}, 0, 0, 0, 0, {}};
      p.trace.steps.push_back(std::move(step));
    }
    finish(p, a.instead(), of, out);
  } catch (const Refused& r) { return Refusal{r.why}; }
  return out;
}

Result<Derivative> jvp(const Graph& g, const std::vector<Along>& along, const std::vector<Port>& of) {
  std::vector<Port> roots = of;
  for (auto& a : along) roots.insert(roots.end(), {a.of, a.tangent});
  Prepared p = prepare(g, roots);
  auto now = [&](Port x) { return p.now[x.node][x.port]; };
  Derivative out;
  try {
    std::map<Port, Port> start;
    for (auto& a : along) start[now(a.of)] = now(a.tangent);
    Tangents t(p.graph, start);
    t.run();
    std::vector<Port> tangents;
    for (Port x : of) {
      const auto moved = t.of(now(x));
      tangents.push_back(moved ? *moved : zeros(p.graph, g.shape(x)));
    }
    finish(p, {}, tangents, out);
  } catch (const Refused& r) { return Refusal{r.why}; }
  return out;
}

} // namespace tang::diff
