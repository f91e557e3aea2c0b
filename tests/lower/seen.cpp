// A component that the others' fold sees, with axes of its own: a count, say. What blocks of a loop add to it is kept
// beside the others, from the identity on and from one part of the domain to the next.
#include <gtest/gtest.h>

#include "lower/pipeline.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
Graph moments(bool parted) {
  Builder b;
  const Tensor x = b.input("x", {7, 33});
  const auto [i, j] = axes<"i j">();
  Scalar term = x(i, j);
  if (parted) term = masked(j < i || j > i + 3, term);
  const auto w = fold(welford(), j, {1.0, term, 0.0});
  b.output(map({i, j}, (x(i, j) - w[1]) / sqrt(w[2] / w[0] + 1e-5)), "y");
  return b.graph();
}
} // namespace

TEST(seen, what_blocks_add_to_is_started_once) {
  for (const target::Target& t : {target::c_target(4, 2), target::cuda_target()})
    for (bool parted : {false, true}) {
      const Graph g = moments(parted);
      Derived d = derive(g, {}, t);
      schedule::Schedule s;
      for (auto& step : d.plan.steps)
        for (auto& m : step.group.members)
          for (int a : {0, 1}) s.groups[schedule::key(*d.plan.graph, m.node)].tile[a] = 3;
      d = derive(g, s, t);
      const eval::Inputs in = random_inputs(g);
      auto got = simulate(d, in);
      for (auto& [name, raw] : eval::run(g, in)) {
        const eval::Array a = filled(raw);
        for (size_t k = 0; k < a.r.size(); ++k) ASSERT_NEAR(got[name].r[k], a.r[k], 1e-5) << name << " at " << k << (parted ? ", parted" : "");
      }
    }
}
