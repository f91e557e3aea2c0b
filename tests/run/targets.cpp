// Every builder of models/ on every other target that this machine has a driver for, each kernel against the oracle.
#include "tang/run/targets.hpp"

#include "run/cases.hpp"
#include "run/harness.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;

namespace {
const Result<run::Opened>& opened(const std::string& name) {
  static std::map<std::string, Result<run::Opened>> all;
  auto it = all.find(name);
  if (it == all.end()) {
    run::TargetOptions o;
    o.compiler = test::compiler_options();
    o.threads = 2;
    o.validate = true;
    it = all.emplace(name, run::open_target(name, o)).first;
  }
  return it->second;
}

void verify_on(const run::Opened& to, const ir::Graph& g, eval::Inputs in, double budget) {
  uint64_t seed = 1;
  for (auto& n : g.nodes)
    if (auto* x = n.input(); x && !in.count(n.name)) in[n.name] = test::random_reals(eval::bound(x->shape), seed++);
  run::Options o = run::options_for(to.target);
  o.guards = true;
  run::Program p(g, to.backend, o);
  const auto r = verify::verify(p, g, in, budget, 2);
  for (auto& c : r.kernels) {
    EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): error " << c.error << ", " << c.unwritten << " unwritten of " << c.values << ". " << c.why << "\n"
                      << kernel::print(p.derivation().kernels.kernels[c.kernel].kernel);
    EXPECT_EQ(c.unwritten, 0) << c.what;
  }
  for (auto& c : r.outputs) EXPECT_TRUE(c.ok) << "output " << c.what << ": error " << c.error;
  for (auto& t : r.trespass) ADD_FAILURE() << "guard band: " << t;
}

class Targets : public testing::TestWithParam<std::tuple<std::string, std::string>> {};
} // namespace

TEST_P(Targets, builder) {
  const auto& [target, builder] = GetParam();
  const auto& to = opened(target);
  if (!to) GTEST_SKIP() << "not present: " << to.why();
  for (auto& c : cases::builders)
    if (builder == c.name)
      c.run({[&](const ir::Graph& g, eval::Inputs in, double budget) {
        try {
          verify_on(*to, g, std::move(in), budget);
        } catch (const Error& e) {
          std::string all = e.what();
          for (auto& f : e.facts()) all += "\n  " + f.text;
          ADD_FAILURE() << all;
        }
      }});
}

namespace {
std::vector<std::string> others() {
  std::vector<std::string> out;
  for (auto& n : run::target_names())
    if (n != "c") out.push_back(n);
  return out;
}
std::vector<std::string> builder_names() {
  std::vector<std::string> out;
  for (auto& c : cases::builders) out.push_back(c.name);
  return out;
}
} // namespace

INSTANTIATE_TEST_SUITE_P(every, Targets, testing::Combine(testing::ValuesIn(others()), testing::ValuesIn(builder_names())),
                         [](const auto& x) { return std::get<0>(x.param) + "_" + std::get<1>(x.param); });
