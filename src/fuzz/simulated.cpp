#include "tang/fuzz/simulated.hpp"

#include <cmath>

#include "tang/kernel/check.hpp"

namespace tang::fuzz {

kernel::Buffer poisoned(int64_t n) {
  kernel::Buffer b;
  b.r.assign(size_t(n), std::nan(""));
  b.i.assign(size_t(n), int64_t(0xA5A5A5A5));
  return b;
}

Simulated::Simulated(const run::Derivation& d, const eval::Inputs& inputs) : d_(d) {
  const ir::Graph& g = *d.plan.graph;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].input()) {
      const eval::Array& a = inputs.at(g[id].name);
      kernel::Buffer b{a.r, a.i};
      b.r.resize(size_t(a.size())), b.i.resize(size_t(a.size()));
      held_[{false, {id, 0}, 0}] = std::move(b);
    }
}

Simulated::Place Simulated::place(const lower::Argument& a) const {
  if (auto* t = std::get_if<int>(&a.what)) return {true, {}, *t};
  const ir::Port p = std::get<ir::Port>(a.what);
  const plan::Buffer* b = d_.plan.buffer(p);
  return {false, b && b->overwrites ? ir::Port{*b->overwrites, 0} : p, 0};
}

void Simulated::one(size_t k, const Launch& launch) {
  const lower::Lowered& l = d_.kernels.kernels[k];
  std::vector<kernel::Buffer> globals;
  for (size_t m = 0; m < l.arguments.size(); ++m) {
    const int64_t n = std::max<int64_t>(0, l.kernel.memories[m].size());
    auto it = held_.try_emplace(place(l.arguments[m]), poisoned(n)).first;
    globals.push_back(it->second);
    if (int64_t(globals.back().r.size()) < n) globals.back().r.resize(size_t(n), std::nan(""));
    if (int64_t(globals.back().i.size()) < n) globals.back().i.resize(size_t(n), 0);
  }
  launch(k, globals);
  for (size_t m = 0; m < l.arguments.size(); ++m)
    if (l.arguments[m].written) held_[place(l.arguments[m])] = globals[m];
}

void Simulated::range(size_t first, size_t last, int depth, const Launch& launch) {
  for (size_t k = first; k < last;) {
    const lower::Loop* loop = nullptr;
    for (auto& l : d_.kernels.loops)
      if (size_t(l.first) == k && l.depth == depth && l.count) loop = &l;
    if (!loop) {
      one(k++, launch);
      continue;
    }
    const size_t end = k + size_t(loop->count), steps = loop->live.size();
    for (size_t n = 0; n < steps; ++n) {
      const int64_t t = int64_t(loop->reverse ? steps - 1 - n : n);
      if (!loop->live[size_t(t)]) continue;
      kernel::Buffer& clock = held_[{true, {}, loop->time}];
      clock.i.assign(1, t), clock.r.assign(1, 0);
      range(k, end, depth + 1, launch);
    }
    k = end;
  }
}

void Simulated::run(const Launch& launch) { range(0, d_.kernels.kernels.size(), 0, launch); }

Outputs Simulated::outputs() const {
  const ir::Graph& g = *d_.plan.graph;
  Outputs out;
  for (auto& o : g.outputs) {
    eval::Array a(eval::bound(g.shape(o.port)), g.type(o.port));
    const auto it = held_.find(place({o.port, false}));
    if (it == held_.end()) {
      check(a.size() == 0, "an output that no kernel wrote: " + o.name);
    } else if (a.type == expr::Type::real) {
      a.r.assign(it->second.r.begin(), it->second.r.begin() + a.size());
    } else {
      a.i.assign(it->second.i.begin(), it->second.i.begin() + a.size());
    }
    out[o.name] = std::move(a);
  }
  return out;
}

Outputs simulate(const run::Derivation& d, const Case& c, kernel::Order order, std::vector<Fault>& faults) {
  for (auto& l : d.kernels.kernels) {
    const auto unproved = [](const std::string& p) { // the run below sees whether it is so
      for (const char* words : {"not provably", "may touch", "at several values"})
        if (p.find(words) != std::string::npos) return true;
      return false;
    };
    for (auto& bad : kernel::problems(l.kernel))
      if (!unproved(bad)) {
        faults.push_back({"check", l.label + ": " + bad});
        break;
      }
  }
  Simulated s(d, c.inputs);
  kernel::Options o;
  o.order = order;
  o.rounded = true;
  s.run([&](size_t k, std::vector<kernel::Buffer>& globals) {
    const auto outcome = kernel::simulate(d.kernels.kernels[k].kernel, globals, o);
    if (!outcome.clean() && faults.empty())
      faults.push_back({"simulator", d.kernels.kernels[k].label + ": " + kernel::text(outcome)});
  });
  return s.outputs();
}

} // namespace tang::fuzz
