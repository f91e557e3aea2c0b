// A case's graph where it is evaluated: by the oracle, and by kernels of a target under every way to schedule them, each
// held against the oracle. The target is $TANG_CASES_ON, else C. A
// case that only the oracle sees says `eval::run`.
#pragma once
#include "models/data.hpp"
#include "run/opened.hpp"
#include "tang/cli/matrix.hpp"

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

inline run::Options c_options(int workers = 1) {
  run::Options o;
  o.target = target::c_target(o.target.lanes, workers);
  o.guards = true;
  return o;
}

inline std::string case_target() {
  const char* name = std::getenv("TANG_CASES_ON");
  return name ? name : "c";
}

inline const Result<run::Opened>& case_device() {
  static const auto* to = new Result<run::Opened>( // never destroyed, as opened() has it
      case_target() == "c"
          ? Result<run::Opened>(run::Opened{c_options().target, "C", run::on_cpu(keeping_compiler(), std::make_shared<device::Cpu>(1))})
          : opened(case_target()));
  return *to;
}

// A target of class finite promises nothing of what is not a number, nor of what is near its stand-in for infinity, and says
// so (docs/targets.md).
inline bool promised(const target::Target& t, const Inputs& in) {
  return t.values == target::Class::exact || std::all_of(in.begin(), in.end(), [](auto& x) {
           return std::all_of(x.second.r.begin(), x.second.r.end(), [](double v) { return std::fabs(v) < 1e38; });
         });
}

// C takes every graph of a case in every way; the others, whose compilers are slow, the first graph of each: OpenCL as derived,
// as written and in one more way, another one for another graph; the rest in one way.
inline std::vector<cli::Way> ways_of(const Graph& g) {
  std::vector<cli::Way> all = cli::ways();
  if (case_target() == "c") return all;
  static std::set<std::string> seen;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  if (!seen.insert(test->name()).second) return {};
  if (case_target() != "opencl") return {all[size_t(ir::hash(g) % all.size())]};
  return {all[0], all[1], all[2 + size_t(ir::hash(g) % (all.size() - 2))]};
}

inline void expect_kernels(const Graph& g, const Inputs& in) {
  if (!case_device()) GTEST_SKIP() << "not present: " << case_device().why();
  const run::Opened& to = *case_device();
  if (!promised(to.target, in)) return;
  for (auto& way : ways_of(g)) {
    cli::Cell c;
    cli::verify_trial(to, {g, in, 1e-5}, way, 1, c);
    // A target of 32-bit integers says so where a case needs wider ones.
    const bool narrow = !to.target.index64 && (c.why.find("no wider integers") != std::string::npos || c.why.find("64-bit") != std::string::npos);
    EXPECT_TRUE(c.failed == 0 || narrow) << case_target() << ", " << way.name << ": " << c.why;
  }
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
