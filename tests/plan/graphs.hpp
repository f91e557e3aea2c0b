// What the planner's tests share: fillings, verification by the machine, and a plan's groups without ids.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "plan/machine.hpp"
#include "tang.hpp"
#include "tang/base/hash.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"

namespace tang::test {

using namespace tang::ir;
using plan::Plan;
using schedule::Schedule;

// sin(s + 0.7 i)
inline eval::Array waves(double s, At shape) {
  std::vector<double> v(size_t(eval::volume(shape)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(s + 0.7 * double(i));
  return eval::reals(std::move(shape), v);
}

// Waves for every real input that is not given; 0, 1, 2, 0, .. for the others.
inline eval::Inputs filled(const Graph& g, eval::Inputs given = {}) {
  double seed = 1;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    auto* in = g[id].input();
    if (!in || given.count(g[id].name)) continue;
    const At shape = eval::bound(in->shape);
    if (type_of(in->format) == expr::Type::real) {
      given[g[id].name] = waves(seed, shape);
    } else {
      eval::Array a(shape, type_of(in->format));
      for (size_t k = 0; k < a.i.size(); ++k)
        a.i[k] = in->format == Format::boolean ? int64_t(k % 3 != 0) : int64_t(k % 3);
      given[g[id].name] = a;
    }
    seed += 1;
  }
  return given;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (auto& l : lines) out += l + "\n";
  return out;
}

// Runs the plan by tiles of several sizes; every buffer is compared with the oracle as it is completed.
inline void verify(const Plan& p, const eval::Inputs& inputs, const std::vector<int64_t>& tiles = {3, 8, 64},
                   bool fills = false) {
  for (int64_t tile : tiles) {
    Machine m(p, tile, fills);
    m.run(inputs);
    EXPECT_TRUE(m.complaints().empty()) << "tile " << tile << "\n"
                                        << joined(m.complaints()) << plan::print(p);
  }
}

inline Plan verified(const Graph& g, eval::Inputs given = {}, const Schedule& s = {}) {
  Plan p = plan::make_plan(g, s);
  verify(p, filled(g, std::move(given)));
  return p;
}

inline Graph optimized(const Graph& g) { return rewrite::optimize(g).graph; }

// As a program is compiled: optimized, supports exposed, fills believed by every reader.
inline Plan compiled(const Graph& g, const eval::Inputs& given = {},
                     const std::vector<int64_t>& tiles = {3, 8, 64}) {
  Plan p = plan::make_plan(rewrite::expose_support(optimized(g)), {});
  verify(p, filled(g, given), tiles, true);
  return p;
}

// Its groups as sets of structural hashes, whatever the ids.
inline std::set<std::set<uint64_t>> groups_of(const Plan& p) {
  std::set<std::set<uint64_t>> out;
  for (auto& s : p.steps) {
    std::set<uint64_t> g;
    if (s.recur) g.insert((*p.graph)[*s.recur].hash);
    for (auto& m : s.group.members) g.insert((*p.graph)[m.node].hash);
    for (auto& x : s.group.shared) g.insert(mix((*p.graph)[x.node].hash));
    for (auto& e : s.group.epilogues) g.insert((*p.graph)[e.node].hash);
    out.insert(g);
  }
  return out;
}

inline int64_t largest_buffer(const Plan& p) {
  int64_t most = 0;
  for (auto& b : p.buffers) most = std::max(most, eval::volume(b.shape));
  return most;
}

} // namespace tang::test
