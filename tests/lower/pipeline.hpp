// The whole way from a naive graph to simulated kernels, compared with the oracle of the naive graph.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tang/eval/oracle.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/simulate.hpp"
#include "tang/lower/lower.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"

namespace tang::test {

struct Derived {
  plan::Plan plan;
  lower::Program program;
};
inline Derived derive(const ir::Graph& g, const schedule::Schedule& s = {}, const target::Target& t = target::c_target(4, 2)) {
  const auto optimized = rewrite::optimize(g);
  const ir::Graph exposed = rewrite::for_planning(optimized.graph, t.sum_cost > 0);
  Derived d{plan::make_plan(exposed, s, t), {}};
  d.program = lower::lower(d.plan, s, t);
  return d;
}
inline kernel::Buffer poisoned(int64_t n) {
  kernel::Buffer b;
  b.r.assign(size_t(n), std::nan(""));
  b.i.assign(size_t(n), int64_t(0xA5A5A5A5));
  return b;
}
// Sees what each kernel is given.
using Watch = std::function<void(const lower::Lowered&, const std::vector<kernel::Buffer>&)>;
// Runs the kernels in the simulator; returns the outputs by name.
inline std::map<std::string, eval::Array> simulate(const Derived& d, const eval::Inputs& inputs,
                                                   kernel::Order order = kernel::Order::reverse, const Watch& watch = {}) {
  const ir::Graph& g = *d.plan.graph;
  std::map<ir::Port, kernel::Buffer> ports;
  std::map<int, kernel::Buffer> temporaries;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* in = g[id].input()) {
      const eval::Array& a = inputs.at(g[id].name);
      kernel::Buffer b{a.r, a.i};
      for (double& v : b.r) v = ir::rounded(v, in->format);
      ports[{id, 0}] = b;
    }
  for (auto& l : d.program.kernels) {
    const auto bad = kernel::problems(l.kernel);
    EXPECT_TRUE(bad.empty()) << l.label << ": " << (bad.empty() ? "" : bad[0]) << "\n" << kernel::print(l.kernel);
    for (size_t a = 0; a < l.arguments.size(); ++a)  // WebGPU binds a place once
      for (size_t b = 0; b < a; ++b) EXPECT_NE(l.arguments[a].what, l.arguments[b].what) << l.label << ": argument " << a;
    std::vector<kernel::Buffer> globals;
    size_t m = 0;
    for (auto& a : l.arguments) {
      const int64_t n = l.kernel.memories[m++].size();
      if (auto* p = std::get_if<ir::Port>(&a.what)) {
        auto it = ports.find(*p);
        if (it == ports.end()) {
          const plan::Buffer* b = d.plan.buffer(*p);
          it = ports.emplace(*p, b && b->overwrites ? ports.at({*b->overwrites, 0}) : poisoned(n)).first;
        }
        globals.push_back(it->second);
      } else {
        const int id = std::get<int>(a.what);
        kernel::Buffer& t = temporaries.try_emplace(id, poisoned(n)).first->second;
        if (int64_t(t.r.size()) < n) t = poisoned(n); // steps share one place, which is as large as the largest
        globals.push_back(t);
      }
    }
    if (watch) watch(l, globals);
    kernel::Options o;
    o.order = order;
    const auto outcome = kernel::simulate(l.kernel, globals, o);
    EXPECT_TRUE(outcome.clean()) << l.label << ": " << kernel::text(outcome) << "\n" << kernel::print(l.kernel);
    for (size_t k = 0; k < l.arguments.size(); ++k) {
      if (!l.arguments[k].written) continue;
      if (auto* p = std::get_if<ir::Port>(&l.arguments[k].what)) ports[*p] = globals[k];
      else temporaries[std::get<int>(l.arguments[k].what)] = globals[k];
    }
  }
  std::map<std::string, eval::Array> out;
  for (auto& o : g.outputs) {
    eval::Array a(eval::bound(g.shape(o.port)), g.type(o.port));
    const kernel::Buffer& b = ports.at(o.port);
    if (a.type == expr::Type::real) std::copy_n(b.r.begin(), a.r.size(), a.r.begin());
    else std::copy_n(b.i.begin(), a.i.size(), a.i.begin());
    out[o.name] = a;
  }
  return out;
}
// Absent points hold the fill, 0.
inline eval::Array filled(eval::Array a) {
  for (size_t k = 0; k < a.state.size(); ++k)
    if (a.state[k]) (a.type == expr::Type::real ? a.r[k] = 0 : double(a.i[k] = 0));
  a.state.clear();
  return a;
}
inline eval::Array random_array(std::vector<int64_t> shape, uint64_t seed, double scale = 1) {
  std::mt19937_64 rng(seed);
  std::vector<double> v(size_t(eval::volume(shape)));
  for (double& x : v) x = double(float(scale * (double(rng() >> 11) * 0x1p-53 * 2 - 1)));
  return eval::reals(shape, v);
}
// Random inputs for every real input of the graph; index inputs must be given.
inline eval::Inputs random_inputs(const ir::Graph& g, eval::Inputs given = {}, uint64_t seed = 1) {
  for (auto& n : g.nodes)
    if (auto* in = n.input())
      if (!given.count(n.name)) given[n.name] = random_array(eval::bound(in->shape), seed++);
  return given;
}
inline void expect_derived(const ir::Graph& g, const eval::Inputs& given = {}, const schedule::Schedule& s = {}, double tolerance = 2e-6) {
  const eval::Inputs inputs = random_inputs(g, given);
  const Derived d = derive(g, s);
  auto got = simulate(d, inputs);
  auto want = eval::run(g, inputs);
  for (auto& [name, a] : want) EXPECT_LT(eval::difference(got[name], filled(a)), tolerance) << name << "\n" << plan::print(d.plan);
}

}  // namespace tang::test
