// Compiles a graph for this CPU, runs it and compares every output with the oracle.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tang/eval/oracle.hpp"
#include "tang/run/program.hpp"

namespace tang::test {

inline device::CompilerOptions compiler_options() {
  device::CompilerOptions o;
  const char* path = std::getenv("PATH");
  o.search = device::split_path(path ? path : "/usr/bin:/bin");
  return o;
}
inline std::shared_ptr<device::Compiler> shared_compiler() {
  static auto c = std::make_shared<device::Compiler>(compiler_options());
  return c;
}
inline eval::Array random_reals(std::vector<int64_t> shape, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<double> v(size_t(eval::volume(shape)));
  for (double& x : v) x = double(float(double(rng() >> 11) * 0x1p-53 * 2 - 1));
  return eval::reals(shape, v);
}
inline void fill(run::Program& p, const ir::Graph& g, eval::Inputs& inputs, uint64_t seed = 1) {
  for (auto& n : g.nodes)
    if (auto* in = n.input()) {
      auto it = inputs.find(n.name);
      if (it == inputs.end()) it = inputs.emplace(n.name, random_reals(eval::bound(in->shape), seed++)).first;
      for (double& v : it->second.r) v = ir::rounded(v, in->format);
      void* to = p.memory(n.name)->data();
      if (it->second.type == expr::Type::real) run::write(to, in->format, it->second.r);
      else run::write(to, in->format, it->second.i);
    }
}
inline eval::Array output(run::Program& p, const ir::Graph& g, const std::string& name) {
  for (auto& o : g.outputs)
    if (o.name == name) {
      eval::Array a(eval::bound(g.shape(o.port)), g.type(o.port));
      const void* from = p.memory(name)->data();
      if (a.type == expr::Type::real) a.r = run::read_reals(from, p.format(name), a.size());
      else a.i = run::read_integers(from, p.format(name), a.size());
      return a;
    }
  return {};
}
inline eval::Array present(eval::Array a) {  // absent points hold 0
  for (size_t k = 0; k < a.state.size(); ++k)
    if (a.state[k]) {
      if (a.type == expr::Type::real) a.r[k] = 0;
      else a.i[k] = 0;
    }
  a.state.clear();
  return a;
}
inline void expect_program(const ir::Graph& g, eval::Inputs inputs = {}, run::Options o = {}, double tolerance = 4e-6) {
  auto cpu = std::make_shared<device::Cpu>(2);
  o.guards = true;
  run::Program p(g, shared_compiler(), cpu, o);
  fill(p, g, inputs);
  p.arena().poison();
  for (auto& t : p.temporaries()) t->poison();
  p.run();
  eval::Options how;
  how.threads = 2;
  const auto want = eval::run(g, inputs, how);
  for (auto& [name, a] : want)
    EXPECT_LT(eval::difference(output(p, g, name), present(a)), tolerance) << name << "\n" << plan::print(p.derivation().plan);
  EXPECT_FALSE(p.arena().trespass());
}

}  // namespace tang::test
