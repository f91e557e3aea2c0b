// A graph's gradient on the C target: each kernel and each gradient against the oracle.
#pragma once
#include "grad/check.hpp"
#include "run/harness.hpp"
#include "tang/verify/verify.hpp"

namespace tang::test {

inline void verify_gradient(const Graph& written, Inputs in, double budget, const std::string& label) {
  SCOPED_TRACE(label);
  GradientCheck check(written, std::move(in), label);
  auto r = diff::gradient(check.g, check.seeds, check.wrt);
  ASSERT_TRUE(r) << r.why();
  Graph g = r->graph;
  for (size_t k = 0; k < check.wrt.size(); ++k)
    g.outputs.push_back({r->of[k], "d " + check.names[k], Format::f32});
  g = canonical(g).graph;
  for (auto& n : g.nodes)
    if (auto* x = n.input()) {
      auto& a = check.in.at(n.name);
      for (double& v : a.r) v = double(float(v));
      (void)x;
    }
  run::Options o;
  o.guards = true;
  run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(2), o);
  const auto report = verify::verify(p, g, check.in, budget, 2);
  for (auto& c : report.kernels) {
    EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): error " << c.error << ", " << c.unwritten << " unwritten of " << c.values << ". " << c.why;
    EXPECT_EQ(c.unwritten, 0) << c.what;
  }
  for (auto& c : report.outputs) EXPECT_TRUE(c.ok) << "output " << c.what << ": error " << c.error << " of " << c.scale << " " << c.why;
  for (auto& t : report.trespass) ADD_FAILURE() << "guard band: " << t;
}

} // namespace tang::test
