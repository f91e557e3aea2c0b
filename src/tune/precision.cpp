#include "tang/tune/precision.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tang/expr/absence.hpp"
#include "tang/text/schedule.hpp"

namespace tang::tune {

using ir::NodeId;
using ir::Op;

namespace {
std::string refusal(const Error& e) {
  std::string out = e.headline();
  for (auto& f : e.facts()) out += "; " + f.text;
  return out;
}

double largest(const std::map<std::string, double>& errors) {
  double w = 0;
  for (auto& e : errors) w = std::max(w, e.second);
  return w;
}
} // namespace

Result<run::Derivation> within(const ErrorBudget& b, const ir::Graph& written, const run::Options& given,
                               const eval::Inputs& inputs) {
  run::Options o = given;
  o.budget.reset();
  run::Derivation d = run::derive(written, o);
  o.budget = b;
  if (auto e = run::over_budget(d, written, o, predicted_errors(d, written, inputs, o.target.workers)))
    return Refusal{refusal(*e)};
  return d;
}

std::vector<char> undecided(const plan::Plan& p) {
  const ir::Graph& g = *p.graph;
  std::vector<char> varies(g.nodes.size(), 0), decisive(g.nodes.size(), 0);
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (auto* in = g[id].input()) varies[id] = ir::type_of(in->format) == ir::Type::real;
    for (auto& q : ir::sources(g, id)) varies[id] |= varies[q.node];
    auto* c = g[id].comp();
    if (!c) {
      for (auto& q : ir::sources(g, id)) decisive[q.node] = 1; // a recurrence may do anything with it
      continue;
    }
    bool discrete = false; // it gives, or keeps beside its value, something that is not real
    for (uint32_t k = 0; k < c->lift.size(); ++k) discrete |= g.type({id, k}) != ir::Type::real;
    if (discrete)
      for (auto& a : c->args) decisive[a.from.node] = 1;
    for (ir::Id lift : c->lift)
      for (Op op :
           {Op::less, Op::equal, Op::floor, Op::is_nan, Op::sin, Op::atan2, Op::to_index, Op::to_bits})
        for (ir::Id t : expr::subterms(g.pool, lift, op))
          for (ir::Id arg : expr::subterms(g.pool, t, Op::arg))
            decisive[c->args[size_t(g.pool[arg].whole)].from.node] = 1;
  }
  for (NodeId id = NodeId(g.nodes.size()); id-- > 0;) // what a map makes a decisive value of is decisive
    if (auto* c = g[id].comp(); c && c->is_map() && decisive[id])
      for (auto& a : c->args) decisive[a.from.node] = 1;
  for (NodeId id = 0; id < g.nodes.size(); ++id) varies[id] = varies[id] && !decisive[id];
  return varies;
}

std::vector<NodeId> narrowable(const plan::Plan& p) {
  const ir::Graph& g = *p.graph;
  const std::vector<char> open = undecided(p);
  std::vector<NodeId> out;
  for (auto& b : p.buffers) {
    const NodeId id = b.of.node;
    if (b.output || b.overwrites || !g[id].comp() || !open[id]) continue;
    bool real = true;
    for (uint32_t k = 0; k < g.ports(id); ++k) real &= g.type({id, k}) == ir::Type::real;
    if (real && b.format == ir::Format::f32 && (out.empty() || out.back() != id)) out.push_back(id);
  }
  return out;
}

schedule::Schedule narrowed(const run::Derivation& d, schedule::Schedule s, ir::Format f) {
  for (NodeId id : narrowable(d.plan)) {
    const std::string key = schedule::key(*d.plan.graph, id);
    if (const auto* known = schedule::fields_of(s, *d.plan.graph, id); known && !s.groups.count(key))
      s.groups[key] = *known;
    s.groups[key].store = f;
  }
  return s;
}

namespace {
struct Wish {
  std::string key;
  schedule::GroupFields fields;
};

std::vector<Wish> wishes(const run::Derivation& d, const run::Options& o) {
  const ir::Graph& g = *d.plan.graph;
  std::vector<Wish> out;
  auto with = [&](NodeId id) {
    const auto* f = schedule::fields_of(o.schedule, g, id);
    return Wish{schedule::key(g, id), f ? *f : schedule::GroupFields{}};
  };
  for (NodeId id : narrowable(d.plan))
    for (ir::Format f : {ir::Format::bf16, ir::Format::f16}) {
      Wish w = with(id);
      w.fields.store = f;
      out.push_back(w);
    }
  // A fold with few points, in as many parts as there are workers.
  for (auto& s : d.plan.steps) {
    if (s.recur || s.group.members.size() != 1 || !s.group.shared.empty() || o.target.workers < 2) continue;
    const NodeId id = s.group.members[0].node;
    const ir::Comp& c = *g[id].comp();
    double points = 1, terms = 1;
    for (auto& e : c.points) points *= double(e.value());
    for (auto& e : c.folds) terms *= double(e.value());
    if (c.folds.empty() || !c.monoid || !c.monoid->commutative || points * 64 > terms || terms < 4096)
      continue;
    Wish w = with(id);
    w.fields.split = 2 * o.target.workers;
    out.push_back(w);
  }
  return out;
}
} // namespace

Precision tune_precision(const Bench& given, const ErrorBudget& budget, double seconds) {
  Bench b = given;
  Precision out{b.options.schedule, {}};
  const run::Derivation start = run::derive(b.written, b.options);
  const bool predictable = oracle_terms(b.written) <= most_oracle_terms;
  std::set<std::string> narrowed; // a buffer that is narrow already
  for (auto& w : wishes(start, b.options)) {
    if (b.stop && b.stop->load()) break;
    if (narrowed.count(w.key)) continue;
    Move m{w.key, text::fields(w.fields), "", 0, {}, {}};
    schedule::Schedule s = out.schedule;
    s.groups[w.key] = w.fields;
    run::Options o = b.options;
    o.schedule = s;
    try {
      if (predictable) {
        const run::Derivation d = run::derive(b.written, o);
        const auto errors = predicted_errors(d, b.written, b.inputs, o.target.workers);
        m.predicted = largest(errors);
        o.budget = budget;
        if (auto e = run::over_budget(d, b.written, o, errors)) m.result = refusal(*e);
      }
    } catch (const Error& e) { m.result = e.headline(); }
    if (m.result.empty()) {
      b.budget = budget.all;
      const auto t = measure(b, {out.schedule, s}, seconds);
      m.before = t[0].whole, m.after = t[1].whole;
      m.result = t[1].kind != Trial::ok                 ? t[1].why
                 : !t[0].whole.runs || !t[1].whole.runs ? "not measured"
                 : t[1].whole.high < t[0].whole.low     ? "kept"
                                                        : "not faster";
    }
    if (m.result == "kept") {
      out.schedule = std::move(s);
      narrowed.insert(w.key);
    }
    out.moves.push_back(std::move(m));
  }
  return out;
}

} // namespace tang::tune
