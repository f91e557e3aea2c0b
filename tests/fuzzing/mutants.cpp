// Kernels of every builder, changed on purpose: checker, simulator and values find the change.
// All: tang fuzz --mutants 200
#include <gtest/gtest.h>

#include "tang/base/hash.hpp"
#include "tang/fuzz/mutate.hpp"
#include "tang/models/cases.hpp"

using namespace tang;

namespace {
std::vector<fuzz::Subject> subjects() {
  std::vector<fuzz::Subject> out;
  for (auto& c : cases::builders) {
    int graphs = 0;
    c.run({[&](const ir::Graph& g, eval::Inputs in, double) {
      if (++graphs > 2) return;
      uint64_t seed = 1;
      for (auto& n : g.nodes)
        if (auto* x = n.input(); x && !in.count(n.name)) {
          if (type_of(x->format) != expr::Type::real) return;
          eval::Array a(eval::bound(x->shape), expr::Type::real);
          for (double& v : a.r) v = ir::rounded(double(int64_t(mix(seed++) >> 52)) / 2048 - 1, x->format);
          in[n.name] = a;
        }
      run::Options o;
      o.target = graphs % 2 ? target::c_target(4, 1) : target::gpu_target("opencl", [] {
        target::Facts f;
        f.workgroup = 64;
        return f;
      }());
      fuzz::Subject s{c.name, run::derive(g, o), in};
      int64_t points = 0;
      for (auto& l : s.derivation.kernels.kernels) points += kernel::workgroups(l.kernel);
      if (s.derivation.kernels.kernels.size() < 12 && points < 4000) out.push_back(std::move(s));
    }});
  }
  return out;
}
} // namespace

TEST(mutants, a_sample_of_each_operator_over_the_builders) {
  const auto all = subjects();
  ASSERT_GE(all.size(), 10u);
  const auto m = fuzz::mutate(all, 20);
  std::printf("%s", fuzz::text(m).c_str());
  for (auto& op : fuzz::operators()) EXPECT_GE(m.at(op.name).sites, 20) << op.name;
  EXPECT_GE(fuzz::killed(m), 0.98);
}
