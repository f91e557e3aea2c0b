// A case's graph where it is evaluated: by the oracle, and by kernels of the C target, as derived and as written,
// each held against the oracle. A case that only the oracle sees says `eval::run`.
#pragma once
#include "models/data.hpp"
#include "run/harness.hpp"
#include "tang/verify/verify.hpp"

namespace tang::test {

// Kept between runs: many cases give one kernel, and a test is a process.
inline std::shared_ptr<device::Compiler> keeping_compiler() {
  static const auto c = [] {
    device::CompilerOptions o = compiler_options();
    o.cache = testing::TempDir() + "tang-cases";
    return std::make_shared<device::Compiler>(o);
  }();
  return c;
}

inline void expect_kernels(const Graph& g, const Inputs& in, const run::Options& o, const std::string& which) {
  run::Program p(g, keeping_compiler(), std::make_shared<device::Cpu>(o.target.workers), o);
  const verify::Report r = verify::verify(p, g, in, 1e-5);
  for (auto& c : r.kernels)
    EXPECT_TRUE(c.ok) << which << ", " << c.what << " (" << c.schedule << "): error " << c.error << " " << c.why << "\n"
                      << plan::print(p.derivation().plan);
  for (auto& c : r.outputs) EXPECT_TRUE(c.ok) << which << ", output " << c.what << ": error " << c.error;
  for (auto& t : r.trespass) ADD_FAILURE() << which << ", guard band of " << t;
}

inline run::Options c_options(int workers = 1) {
  run::Options o;
  o.target = target::c_target(o.target.lanes, workers);
  o.guards = true;
  return o;
}

inline run::Options as_written(run::Options o = c_options()) {
  o.optimize = false;
  o.schedule = schedule::as_written();
  return o;
}

inline void expect_kernels(const Graph& g, const Inputs& in) {
  expect_kernels(g, in, c_options(), "derived");
  expect_kernels(g, in, as_written(), "as written");
}

// What the graph is under `how`; where that is the plain oracle, what kernels give is compared with it.
inline std::map<std::string, Array> everywhere(const Graph& g, const Inputs& in, const eval::Options& how = {}) {
  if (how.numerics.empty() && how.order.kind == ir::FoldOrder::sequential) expect_kernels(g, in);
  return eval::run(g, in, how);
}

inline Array everywhere(const Graph& g, const Inputs& in, const std::string& name, const eval::Options& how = {}) {
  return everywhere(g, in, how).at(name);
}

} // namespace tang::test
