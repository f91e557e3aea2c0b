// A transformer block whose values are stored as its products read them: all products in tensor form, values
// as the oracle's, and role programs as their kernels say.
#include "lower/role_runs.hpp"
#include "tang/grad/surface.hpp"
#include "tang/kernel/simulate_roles.hpp"
#include "tang/models/block.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/text/print.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr auto bf16 = ir::Format::bf16;

ir::Graph block(bool gradients, bool tables = false) {
  ir::Builder b;
  models::BlockSize z;
  z.model = 96, z.heads = 4, z.kv_heads = 2, z.head = 32, z.hidden = 80;
  if (tables) z.rope.cos = b.input("cos", {72, z.head / 2}, bf16), z.rope.sin = b.input("sin", {72, z.head / 2}, bf16);
  const models::BlockWeights w = models::block_weights(b, "w", z, bf16);
  const ir::Tensor x = b.input("x", {1, 72, z.model}, bf16), y = models::block(x, w, z);
  b.output(y, "y", bf16);
  if (!gradients) return b.graph();
  const std::vector<ir::Tensor> of{x, w.attention_norm, w.q, w.k, w.v, w.o, w.mlp_norm, w.gate, w.up, w.down};
  const auto d = diff::vjp(y, b.input("dy", y.shape(), bf16), of);
  for (size_t i = 0; i < of.size(); ++i) b.output(d[i], "d" + of[i].name(), bf16);
  return b.graph();
}

run::Derivation derived(const ir::Graph& g) {
  run::Options o = run::hopper_options();
  o.operands = bf16;
  return run::derive(g, o);
}

// Weights are small, as of a model: scores of hundreds would turn roundings into other keys.
eval::Inputs small_inputs(const ir::Graph& g) {
  eval::Inputs in = rounded_inputs(g);
  for (auto& [name, a] : in)
    if (name[0] == 'w' && a.shape.size() == 2)
      for (double& v : a.r) v /= 16;
  return in;
}

double worst(const eval::Array& got, const eval::Array& want) {
  double top = 0, off = 0;
  for (size_t x = 0; x < want.r.size(); ++x)
    top = std::max(top, std::abs(want.r[x])),
    off = std::max(off, std::isnan(got.r[x]) ? 1e9 : std::abs(got.r[x] - want.r[x]));
  return off / top;
}
} // namespace

TEST(stored_operands, a_block_and_its_gradients_are_products_in_tensor_form) {
  for (bool gradients : {false, true}) {
    const ir::Graph g = block(gradients, true);
    const auto d = derived(g);
    int products = 0;
    for (auto& l : d.kernels.kernels) {
      products += bool(l.roles);
      if (!gradients) {
        EXPECT_EQ(l.schedule.find("panels"), std::string::npos) << l.label << ": " << l.refused;
      }
    }
    // q, k, v, scores and values, o, gate with up, down. Sums over so few features are evaluated where a
    // gradient reads them; the others are products, too.
    EXPECT_GE(products, gradients ? 19 : 7) << plan::print(d.plan);
    const eval::Inputs in = small_inputs(g);
    auto got = simulate({d.plan, d.kernels}, in);
    for (auto& [name, raw] : eval::run(g, in)) EXPECT_LE(worst(got[name], filled(raw)), 2e-2) << name;
  }
}

TEST(stored_operands, roles_do_what_their_kernels_say) {
  const auto d = derived(block(true, true));
  for (auto& l : d.kernels.kernels) {
    if (!l.roles) continue;
    const auto p = kernel::expand_roles(l.kernel, *l.roles);
    ASSERT_TRUE(bool(p)) << p.why();
    std::vector<kernel::Buffer> before;
    uint64_t seed = 7;
    for (size_t a = 0; a < l.arguments.size(); ++a) {
      const kernel::Memory& m = l.kernel.memories[a];
      before.push_back(poisoned(m.size()));
      if (l.arguments[a].written) continue;
      before.back().r = random_array({m.size()}, seed++).r;
      for (double& x : before.back().r) x = ir::rounded(x, m.format);
    }
    std::vector<kernel::Buffer> want = before, got = before;
    EXPECT_TRUE(kernel::simulate(l.kernel, want).clean());
    const auto fault = kernel::simulate_roles(*p, got, {});
    EXPECT_FALSE(fault) << l.label << ": " << kernel::word(fault->kind) << ": " << fault->text;
    EXPECT_LT(difference(want, got), 1e-2) << l.label << " " << l.schedule;
  }
}

// A column's number that is a step along the row in one place is a number of its own in another.
TEST(stored_operands, a_maps_columns_are_named_before_they_are_read) {
  EXPECT_EQ(run::cuda_source(derived(block(true)), run::hopper_options().target).find("( + "), std::string::npos);
}

// Tables of angles are read as they lie, and the values are those of the angles.
TEST(stored_operands, tables_of_angles_are_the_angles) {
  const ir::Graph with = block(true, true), without = block(true);
  eval::Inputs in = small_inputs(with);
  for (auto [name, cosine] : {std::pair("cos", true), std::pair("sin", false)})
    for (int64_t i = 0; i < int64_t(in[name].r.size()); ++i) {
      const double angle = double(i / 16) * std::pow(10000.0, -double(i % 16) / 16);
      in[name].r[size_t(i)] = cosine ? std::cos(angle) : std::sin(angle);
    }
  const auto got = eval::run(with, in), want = eval::run(without, in);
  for (auto& [name, a] : want) EXPECT_LT(eval::difference(filled(got.at(name)), filled(a)), 1e-9) << name;
}

// The rewrite alone keeps the values, and equal sides are one array.
TEST(stored_operands, sides_are_one_array_for_all_their_readers) {
  for (bool gradients : {false, true}) {
    const ir::Graph written = rewrite::optimize(block(gradients)).graph,
                    g = rewrite::row_weights(rewrite::narrow_operands(written)),
                    now = rewrite::stored_operands(g);
    const eval::Inputs in = rounded_inputs(g);
    const auto want = eval::run(g, in), got = eval::run(now, in);
    for (auto& [name, a] : want) EXPECT_LT(eval::difference(filled(got.at(name)), filled(a)), 1e-9) << name;
    int sides = 0;
    for (auto& n : now.nodes) sides += n.name == "operand";
    // norm * x and norm * residual; then what flows into gate, up, both sides of the attention, q and k
    EXPECT_EQ(sides, gradients ? 8 : 2) << text::print(now);
  }
}
