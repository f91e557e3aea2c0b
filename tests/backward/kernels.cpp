// The backward of attention as kernels: checked, simulated with workgroups in two orders, then compiled for this CPU and
// verified against the oracle, poisoned and between guard bands.
#include "backward/attention.hpp"
#include "lower/pipeline.hpp"
#include "run/harness.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// Slopes small enough that lse, stored in f32, keeps the weights to 1e-6: |score| < 8.
eval::Inputs given(const AttentionSize& z) {
  eval::Inputs in;
  std::vector<int64_t> shape{z.heads};
  if (z.group) shape.push_back(z.group);
  if (z.alibi) in["slopes"] = random_array(shape, 5, 4.0 / double(z.keys));
  if (z.keep) {
    eval::Array a({z.rows, z.keys}, expr::Type::boolean);
    for (size_t k = 0; k < a.i.size(); ++k) a.i[k] = k % 7 != 3 && k / size_t(z.keys) != 2; // row 2 sees no key
    in["keep"] = a;
  }
  return in;
}
const std::vector<AttentionSize>& variants() {
  static const std::vector<AttentionSize> all{
      {},
      {.heads = 1, .rows = 140, .keys = 170, .causal = true},
      {.group = 3, .causal = true},
      {.batch = 2, .rows = 70, .keys = 70, .causal = true, .alibi = true},
      {.causal = true, .window = 7, .distances = 40},
      {.rows = 40, .keys = 33, .d = 5, .c = 3, .causal = true}, // the first rows see no key
      {.heads = 3, .rows = 9, .keys = 150, .d = 20, .c = 36, .cap = 5},
      {.rows = 1, .keys = 1, .d = 1, .c = 1},
      {.rows = 50, .keys = 45, .causal = true, .keep = true},
      {.heads = 1, .rows = 140, .keys = 140, .causal = true, .distances = 140},
  };
  return all;
}
schedule::Schedule split(const plan::Plan& p, int parts) {
  schedule::Schedule s;
  for (auto& step : p.steps)
    if (step.group.members.size() > 1)
      for (auto& m : step.group.members) s.groups[p.graph->label({m.node, 0})].parts = parts;
  return s;
}
} // namespace

TEST(backward, kernels_are_clean_and_right_in_the_simulator) {
  for (auto& z : variants())
    for (int parts : {0, 2}) {
      const ir::Graph g = attention_with_backward(z);
      const eval::Inputs inputs = random_inputs(g, given(z));
      Derived d = derive(g);
      if (parts) d = derive(g, split(d.plan, parts));
      const auto want = eval::run(g, inputs);
      for (auto order : {kernel::Order::reverse, kernel::Order::random}) {
        auto got = simulate(d, inputs, order);
        for (auto& [name, a] : want) EXPECT_LT(eval::difference(got[name], filled(a)), 1e-5) << name << "\n" << plan::print(d.plan);
      }
    }
}

TEST(backward, kernels_are_right_on_this_cpu) {
  for (auto& z : variants())
    for (int parts : {0, 3}) {
      const ir::Graph g = attention_with_backward(z);
      run::Options o;
      o.guards = true;
      o.target = target::c_target_of_host(2);
      if (parts) o.schedule = split(run::derive(g, o).plan, parts);
      run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(2), o);
      const verify::Report r = verify::verify(p, g, random_inputs(g, given(z), 7), 1e-5);
      EXPECT_TRUE(r.ok()) << "rows " << z.rows << " parts " << parts << " worst " << r.worst() << "\n" << plan::print(p.derivation().plan);
    }
}

TEST(backward, nothing_is_launched_for_empty_sizes) {
  for (auto z : {AttentionSize{.rows = 0}, AttentionSize{.keys = 0}, AttentionSize{.heads = 0}}) expect_program(attention_with_backward(z));
}
