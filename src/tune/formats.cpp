#include "tang/tune/formats.hpp"

#include <algorithm>
#include <cmath>

#include "tang/verify/bound.hpp"

namespace tang::tune {

using ir::NodeId;

std::vector<NodeId> accumulable(const plan::Plan& p) {
  const ir::Graph& g = *p.graph;
  const std::vector<char> open = undecided(p);
  std::vector<NodeId> out;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const ir::Comp* c = g[id].comp();
    if (!c || !c->monoid || !open[id]) continue;
    bool real = true;
    for (uint32_t k = 0; k < g.ports(id); ++k) real &= g.type({id, k}) == ir::Type::real;
    if (real) out.push_back(id);
  }
  return out;
}

schedule::Schedule accumulated(const run::Derivation& d, schedule::Schedule s, ir::Format f, int parts) {
  const ir::Graph& g = *d.plan.graph;
  for (NodeId id : accumulable(d.plan)) {
    const std::string key = schedule::key(g, id);
    if (const auto* known = schedule::fields_of(s, g, id); known && !s.groups.count(key))
      s.groups[key] = *known;
    s.groups[key].accumulate = f;
    const ir::Comp& c = *g[id].comp();
    const bool splits = parts > 1 && c.monoid->commutative && c.folds[0].value() >= long_sum;
    if (splits) s.groups[key].split = parts;
  }
  return s;
}

bool FormatRow::ok() const {
  if (!(measured <= predicted + bound)) return decides() && measured <= 2 * predicted;
  return !decides() || 2 * measured >= predicted;
}

namespace {
int narrow_places(const plan::Plan& p) {
  const auto narrow = [](ir::Format f) {
    return ir::row(f).type == ir::Type::real && ir::row(f).mantissa < ir::row(ir::Format::f32).mantissa;
  };
  int n = 0;
  for (auto& b : p.buffers) n += narrow(b.format);
  for (auto& s : p.states) n += narrow(s.second);
  return n;
}

double largest(const std::vector<double>& v) {
  double out = 0;
  for (double x : v)
    if (std::isfinite(x)) out = std::max(out, std::fabs(x));
  return out;
}
} // namespace

std::vector<FormatRow> format_rows(const ir::Graph& written, const run::Options& o,
                                   const run::Backend& backend, const eval::Inputs& given, int threads) {
  const eval::Inputs inputs = run::rounded_to_formats(written, given);
  run::Program p(written, backend, o);
  const plan::Plan& plan = p.derivation().plan;
  const int narrow = narrow_places(plan);
  if (!narrow) return {};
  const auto predicted = run::predicted_errors(p.derivation(), written, inputs, threads);
  const auto bounds = verify::error_bounds(*plan.graph, inputs, verify::single());
  eval::Options exact;
  exact.threads = threads;
  const auto want = eval::run(written, inputs, exact);
  p.poison_scratch();
  verify::feed(p, written, inputs);
  p.run();
  std::vector<FormatRow> out;
  for (auto& x : plan.graph->outputs) {
    const eval::Array& w = want.at(x.name);
    if (w.type != ir::Type::real) continue;
    FormatRow r;
    r.output = x.name;
    r.narrow = narrow;
    r.predicted = predicted.at(x.name);
    r.measured = run::relative_error(verify::read(p, x.port, p.format(x.name), *plan.graph), w);
    const double scale = largest(w.r);
    const std::vector<double>& b = bounds.at(x.name).r;
    // An output's own rounding to f32 is part of either.
    const double most = b.empty() ? 0 : *std::max_element(b.begin(), b.end());
    r.bound = 0x1p-24 + (scale > 0 ? most / scale : most);
    out.push_back(std::move(r));
  }
  return out;
}

} // namespace tang::tune
