// Attention's gradients in tensor form: planned by the ordinary pipeline, equal to the oracle in the
// simulator, and the role programs equal to their kernels for many orders of events.
#include <array>

#include "backward/attention_gradient.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;
using namespace tang::test;

TEST(tensor_gradient, every_kernel_is_a_role_program_and_equals_the_oracle) {
  for (const Size& s : {Size{2, 2, 200, 200, 32, false}, Size{1, 1, 200, 200, 32, true},
                        Size{4, 2, 136, 136, 16, true}, Size{2, 1, 136, 72, 16, false}}) {
    const ir::Graph g = gradient(s);
    const auto d = run::derive(g, run::hopper_options());
    int kernels = 0;
    for (auto& l : d.kernels.kernels) kernels += bool(l.roles);
    std::string refused;
    for (auto& l : d.kernels.kernels)
      if (!l.roles) refused += l.label + ": " + l.refused + "\n";
    EXPECT_GE(kernels, 3) << refused << plan::print(d.plan); // forward, dq, dk and dv
    const eval::Inputs in = rounded_inputs(g);
    auto got = simulate({d.plan, d.kernels}, in);
    for (auto& [name, raw] : eval::run(g, in)) {
      const eval::Array a = filled(raw);
      double top = 0, off = 0;
      for (size_t x = 0; x < a.r.size(); ++x)
        top = std::max(top, std::abs(a.r[x])),
        off = std::max(off, std::isnan(got[name].r[x]) ? 1e9 : std::abs(got[name].r[x] - a.r[x]));
      EXPECT_LE(off, 1.2e-2 * top) << name;
    }
    for (auto& l : d.kernels.kernels)
      for (int lag : {0, 1}) { // with contractions over the edge of a block, too
        if (!l.roles || (l.roles->skew && lag != l.roles->lag)) continue;
        target::Roles fields = *l.roles;
        fields.lag = lag;
        expect_roles(l, fields, buffers(l));
      }
  }
}

namespace {
ir::Graph rewritten(const ir::Graph& g) {
  return rewrite::row_weights(rewrite::narrow_operands(rewrite::optimize(g).graph));
}
} // namespace

// What the rewrites for matrix instructions leave is the same function, rows without a live key included.
TEST(tensor_gradient, rewrites_of_operands_and_rows_keep_the_values) {
  for (const Size& s :
       {Size{2, 2, 40, 40, 8, true}, Size{2, 1, 40, 24, 8, true}, Size{1, 1, 24, 40, 8, false}}) {
    const ir::Graph g = gradient(s), now = rewritten(g);
    const eval::Inputs in = rounded_inputs(g);
    const auto want = eval::run(g, in), got = eval::run(now, in);
    for (auto& [name, a] : want) EXPECT_LT(eval::difference(filled(got.at(name)), filled(a)), 1e-9) << name;
  }
}

// After the rewrites the weights of all three results share one number a row, no accumulator is stored, and
// the operands of every product are arrays of 16 bits.
TEST(tensor_gradient, operands_are_stored_arrays_and_rows_one_number) {
  const auto d = run::derive(gradient({2, 2, 512, 512, 64, true}), run::hopper_options());
  int rows = 0;
  for (auto& b : d.plan.buffers) {
    int64_t n = 1;
    for (int64_t e : b.shape) n *= e;
    EXPECT_LE(n, 2 * 512 * 64) << plan::print(d.plan);                        // no array of scores
    EXPECT_TRUE(n < 2 * 512 * 64 || b.format == ir::Format::bf16) << plan::print(d.plan); // nor of wide accumulators
    rows += n == 2 * 512;
  }
  EXPECT_LE(rows, 4) << plan::print(d.plan);
}
