// A gradient against central differences and against forward mode, in f64 on the oracle.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tang/eval/oracle.hpp"
#include "tang/grad/gradient.hpp"

namespace tang::test {

using namespace tang::ir;
using eval::Array;
using eval::Inputs;

inline Array random_array(std::vector<int64_t> shape, std::mt19937_64& rng) {
  std::vector<double> v(size_t(eval::volume(shape)));
  for (double& x : v) x = double(rng() >> 11) * 0x1p-53 * 2 - 1;
  return eval::reals(shape, v);
}

// Random values for every input that is not given.
inline Inputs inputs_of(const Graph& g, Inputs in = {}) {
  std::mt19937_64 rng(3);
  for (auto& n : g.nodes)
    if (auto* x = n.input(); x && !in.count(n.name)) in[n.name] = random_array(eval::bound(x->shape), rng);
  return in;
}

inline double dot(const Array& a, const Array& b) {
  double s = 0;
  for (int64_t k = 0; k < a.size(); ++k)
    if (a.at(k).r != 0 && a.at(k).state == expr::State::present && b.at(k).state == expr::State::present) s += a.at(k).r * b.at(k).r;
  return s;
}

// Every real output of g weighted by a random input, every real input moved.
struct GradientCheck {
  Graph g;
  Inputs in;
  std::mt19937_64 rng{7};
  std::vector<Port> wrt = {};
  std::vector<std::string> names = {};
  std::vector<diff::Seed> seeds = {};
  std::map<std::string, Array> weights = {};  // of each output
  std::optional<diff::Derivative> reverse = {};
  std::map<std::string, Array> gradients = {};  // of each input
  std::string where;

  GradientCheck(const Graph& graph, Inputs inputs, std::string label = "") : g(graph), in(std::move(inputs)), where(std::move(label)) {
    for (NodeId id = 0; id < g.nodes.size(); ++id)
      if (auto* x = g[id].input(); x && type_of(x->format) == expr::Type::real) {
        wrt.push_back({id, 0});
        names.push_back(g[id].name);
        if (!in.count(g[id].name)) in[g[id].name] = random_array(eval::bound(x->shape), rng);
      }
    const std::vector<Output> outputs = g.outputs;
    for (auto& o : outputs) {
      if (g.type(o.port) != expr::Type::real) continue;
      const std::string name = "weight of " + o.name;
      Array w = random_array(eval::bound(g.shape(o.port)), rng);
      const Array at = eval::Oracle(graph, in).port(o.port);
      for (int64_t k = 0; k < w.size(); ++k)  // an empty row's lse is -inf: it has no weight, and must do no harm
        if (at.at(k).state != expr::State::present || !std::isfinite(at.at(k).r)) w.r[size_t(k)] = 0;
      weights[o.name] = w;
      in[name] = weights[o.name];
      seeds.push_back({o.port, Port{g.add({Input{Input::data, g.shape(o.port), Format::f64}, name, {}}), 0}});
    }
  }
  double loss(eval::Oracle& o) const {
    double s = 0;
    for (auto& x : g.outputs)
      if (auto w = weights.find(x.name); w != weights.end()) s += dot(w->second, o.port(x.port));
    return s;
  }
  void run(const diff::Options& options = {}) {
    auto r = diff::gradient(g, seeds, wrt, options);
    ASSERT_TRUE(r) << where << ": " << r.why();
    validate(r->graph);
    reverse = *r;
    eval::Oracle o(reverse->graph, in);
    for (size_t k = 0; k < wrt.size(); ++k) gradients[names[k]] = o.port(reverse->of[k]);
  }
  // Fourth order: error h^4 f^(5) / 30, rounding 1e-16 / h.
  double central(eval::Oracle& o, const std::string& name, int64_t entry, double h = 2e-4) {
    Array a = in.at(name);
    const double x = a.r[size_t(entry)];
    double s = 0;
    for (auto [step, factor] : {std::pair{1., 8.}, {-1., -8.}, {2., -1.}, {-2., 1.}}) {
      a.r[size_t(entry)] = x + step * h;
      o.rebind(name, a);
      s += factor * loss(o);
    }
    o.rebind(name, in.at(name));
    return s / (12 * h);
  }
  void expect_central(int entries = 4, double tolerance = 1e-6) {
    eval::Oracle o(g, in);
    for (auto& name : names) {
      const Array& d = gradients.at(name);
      double scale = 1;
      for (double v : d.r)
        if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
      for (int k = 0; k < entries && d.size(); ++k) {
        const int64_t at = int64_t(rng() % uint64_t(d.size()));
        if (!std::isfinite(in.at(name).r[size_t(at)])) continue;
        const double want = central(o, name, at);
        ASSERT_LT(std::fabs(d.r[size_t(at)] - want), tolerance * scale) << where << ": d " << name << " at " << at << ": " << d.r[size_t(at)] << ", differences say " << want;
      }
      for (double v : d.r) ASSERT_TRUE(std::isfinite(v)) << where << ": d " << name;
    }
  }
  // <gradient, direction> against <weights, jvp(direction)>: entry by entry and in random directions.
  void expect_forward(int directions = 2, double tolerance = 1e-9) {
    Graph f = g;
    std::vector<diff::Along> along;
    for (size_t k = 0; k < wrt.size(); ++k)
      along.push_back({wrt[k], {f.add({Input{Input::data, f.shape(wrt[k]), Format::f64}, "direction of " + names[k], {}}), 0}});
    std::vector<Port> of;
    for (auto& s : seeds) of.push_back(s.of);
    auto r = diff::jvp(f, along, of);
    ASSERT_TRUE(r) << where << ": " << r.why();
    validate(r->graph);
    for (int k = 0; k < directions + int(names.size()); ++k) {
      Inputs now = in;
      double want = 0, scale = 1;
      for (size_t q = 0; q < names.size(); ++q) {
        Array d = random_array(in.at(names[q]).shape, rng);
        if (k >= directions && int(q) != k - directions) d.r.assign(d.r.size(), 0);
        for (size_t e = 0; e < d.r.size(); ++e)
          if (!std::isfinite(in.at(names[q]).r[e])) d.r[e] = 0;
        const double part = dot(gradients.at(names[q]), d);
        want += part;
        scale = std::max(scale, std::fabs(part));
        now["direction of " + names[q]] = d;
      }
      eval::Oracle o(r->graph, now);
      double got = 0;
      for (size_t s = 0; s < seeds.size(); ++s) got += dot(in.at(g[seeds[s].with->node].name), o.port(r->of[s]));
      ASSERT_LT(std::fabs(got - want), tolerance * scale) << where << ": direction " << k << (k >= directions ? " along " + names[size_t(k - directions)] : "");
    }
  }
};

}  // namespace tang::test
