#include "tang/run/budget.hpp"

#include <algorithm>
#include <cmath>

#include "tang/base/number.hpp"

namespace tang::run {

using kernel::Rounding;
using kernel::Roundings;

namespace {
// Ports and temporaries as places, and every kernel's memories among them.
class Places {
public:
  Places(const Derivation& d, int lanes) : d_(d), lanes_(lanes) {}

  Roundings run() {
    for (auto& l : d_.kernels.kernels)
      for (auto& a : l.arguments) place(a);
    Roundings all(places_.size());
    range(0, d_.kernels.kernels.size(), 0, all);
    return all;
  }

  std::optional<Rounding> of(ir::Port p, const Roundings& all) const {
    const auto it = places_.find(name(p));
    return it == places_.end() ? std::nullopt : all[it->second];
  }

private:
  using Name = std::pair<int64_t, int64_t>;

  // A new value that is written over a state lies where the state does.
  Name name(ir::Port p) const {
    const plan::Buffer* b = d_.plan.buffer(p);
    return b && b->overwrites ? Name(*b->overwrites, 0) : Name(p.node, p.port);
  }

  size_t place(const lower::Argument& a) {
    const int* temporary = std::get_if<int>(&a.what);
    return places_.try_emplace(temporary ? Name(-1, *temporary) : name(std::get<ir::Port>(a.what)), places_.size())
        .first->second;
  }

  void one(const lower::Lowered& l, Roundings& all) {
    Roundings here;
    for (auto& a : l.arguments) here.push_back(all[place(a)]);
    kernel::follow(l.kernel, lanes_, here);
    for (size_t k = 0; k < l.arguments.size(); ++k)
      if (l.arguments[k].written) all[place(l.arguments[k])] = here[k];
  }

  void range(size_t first, size_t last, int depth, Roundings& all) {
    for (size_t k = first; k < last;) {
      const lower::Loop* loop = nullptr;
      for (auto& l : d_.kernels.loops)
        if (size_t(l.first) == k && l.depth == depth && l.count) loop = &l;
      if (!loop) {
        one(d_.kernels.kernels[k++], all);
        continue;
      }
      const size_t end = k + size_t(loop->count);
      kernel::repeat(std::count(loop->live.begin(), loop->live.end(), 1), all,
                     [&](Roundings& r) { range(k, end, depth + 1, r); });
      k = end;
    }
  }

  const Derivation& d_;
  const int lanes_;
  std::map<Name, size_t> places_;
};

// Half a unit of an output's own format is not an error of the schedule.
double own_unit(const Derivation& d, ir::Port p) {
  const auto& f = ir::row(lower::format_of(d.plan, p));
  return f.type == ir::Type::real ? std::ldexp(1.0, -f.mantissa - 1) : 0;
}

std::string two(double v) {
  char s[32];
  std::snprintf(s, sizeof s, "%.2g", v);
  return s;
}

// How the bound comes about.
std::string story(const Rounding& r) {
  if (!r.known()) return "no bound is known without its values: it takes " + r.why;
  const double steps = std::round(r.growth / std::log1p(0x1p-24));
  return "proved: (1 + 2^-24)^" + shortest(steps) + " - 1 of the size of its terms, for the order in which they are added";
}

Where where_of(const ir::Graph& g, const std::string& output) {
  for (auto& x : g.outputs)
    if (x.name == output) return g[x.port.node].where;
  return {};
}

void refuse_unknown_outputs(const ErrorBudget& budget, const ir::Graph& g) {
  for (auto& one : budget.of)
    if (std::none_of(g.outputs.begin(), g.outputs.end(), [&](auto& x) { return x.name == one.first; }))
      throw Error({}, "the error budget names '" + one.first + "'", {{"the graph has no such output", {}}}, "name one of its outputs");
}
} // namespace

std::map<std::string, Rounding> roundings(const Derivation& d, const Options& o) {
  Places places(d, o.target.lanes);
  const Roundings all = places.run();
  std::map<std::string, Rounding> out;
  for (auto& x : d.plan.graph->outputs) out[x.name] = places.of(x.port, all).value_or(Rounding{});
  return out;
}

eval::Inputs rounded_to_formats(const ir::Graph& written, eval::Inputs inputs) {
  for (auto& n : written.nodes)
    if (auto* in = n.input(); in && inputs.count(n.name))
      for (double& v : inputs.at(n.name).r) v = ir::rounded(v, in->format);
  return inputs;
}

eval::Options emulation(const plan::Plan& p, int threads) {
  eval::Options out;
  out.threads = threads;
  for (ir::NodeId id = 0; id < p.graph->nodes.size(); ++id) {
    if (!(*p.graph)[id].comp()) continue;
    eval::Numeric n;
    n.store = n.accumulate = ir::Format::f32;
    if (auto it = p.states.find(id); it != p.states.end()) n.accumulate = it->second;
    for (auto& b : p.buffers)
      if (b.of.node == id && ir::row(b.format).type == ir::Type::real) n.store = b.format;
    out.numerics[id] = n;
  }
  return out;
}

double relative_error(const eval::Array& got, const eval::Array& exact) {
  double worst = 0, scale = 0;
  for (int64_t k = 0; k < exact.size(); ++k) {
    const expr::Value x = got.at(k), y = exact.at(k);
    if (y.state != expr::State::present) continue;
    if (exact.type != expr::Type::real) { // an index is right or wrong
      if (x.i != y.i) worst = HUGE_VAL;
      continue;
    }
    if (std::isfinite(y.r)) scale = std::max(scale, std::fabs(y.r));
    if (x.r == y.r || (std::isnan(x.r) && std::isnan(y.r))) continue;
    const double gap = std::fabs(x.r - y.r);
    worst = std::max(worst, std::isfinite(gap) ? gap : HUGE_VAL);
  }
  return worst == 0 ? 0 : scale > 0 ? worst / scale : worst;
}

std::map<std::string, double> predicted_errors(const Derivation& d, const ir::Graph& written,
                                               const eval::Inputs& given, int threads) {
  const ir::Graph g = in_pieces(d);
  const eval::Inputs inputs = rounded_to_formats(written, given);
  const eval::Options emulated = emulation(d.plan, threads);
  eval::Options exact;
  exact.threads = threads;
  const auto got = eval::run(g, inputs, emulated), want = eval::run(written, inputs, exact);
  std::map<std::string, double> out;
  for (auto& [name, w] : want) {
    auto it = got.find(name);
    if (it == got.end()) continue;
    out[name] = relative_error(it->second, w);
  }
  return out;
}

std::optional<Error> over_budget(const Derivation& d, const ir::Graph& written, const Options& o,
                                 const std::map<std::string, double>& predicted) {
  const ErrorBudget& budget = *o.budget;
  refuse_unknown_outputs(budget, written);
  const auto bounds = roundings(d, o);
  for (auto& x : d.plan.graph->outputs) {
    const Rounding& r = bounds.at(x.name);
    const double allowed = budget.at(x.name), most = allowed + own_unit(d, x.port);
    const auto p = predicted.find(x.name);
    const bool proved = r.known() && r.bound() <= most;
    if (p == predicted.end() ? proved : (proved && r.solid) || p->second <= most) continue;
    std::string headline = "output '" + x.name + "'", fix = "split its longest sum (`split` of its group), store in a wider format, or allow more";
    if (p != predicted.end()) headline += ": the error predicted for it is " + two(p->second) + " of its largest value";
    else if (r.known()) headline += " may be off by " + two(r.bound()) + " of the size of its terms";
    else headline += ": how far it may be off is not known before it runs", fix = "give the budget samples of the inputs, from which the error is predicted";
    return Error(where_of(written, x.name), headline, {{"the budget is " + two(allowed), {}}, {story(r), {}}}, fix);
  }
  return {};
}

} // namespace tang::run
