// Sums in parts, maps that are alike, and what a lane brings for its neighbours: the means by which a whole
// block of a transformer keeps a GPU's workers busy.
#include "backward/attention.hpp"
#include "lower/role_runs.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/run/cuda.hpp"
#include "tang/text/print.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr auto bf16 = ir::Format::bf16;
constexpr int64_t many_workers = 132;

ir::Graph columns(int64_t rows, int64_t width) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {rows, width}, bf16), d = b.input("d", {rows, width}, bf16);
  const ir::Tensor s = b.input("s", {rows});
  auto [i, c] = ir::axes<"i c">();
  b.output(ir::map({c}, ir::sum(i, x(i, c) * (d(i, c) * s(i)))), "y");
  return b.graph();
}

run::Derivation derived(const ir::Graph& g) {
  run::Options o = run::hopper_options();
  o.operands = bf16;
  return run::derive(g, o);
}

double apart(const ir::Graph& a, const ir::Graph& b) {
  const eval::Inputs in = rounded_inputs(a);
  double off = 0;
  const auto want = eval::run(a, in), got = eval::run(b, in);
  for (auto& [name, x] : want) off = std::max(off, eval::difference(filled(got.at(name)), filled(x)));
  return off;
}

ir::Graph product(int64_t width, int64_t rows = 128) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {rows, 64}, bf16), w = b.input("w", {width, 64}, bf16);
  const ir::Tensor r = b.input("r", {rows, width}, bf16);
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, x(i, k) * w(j, k)) + r(i, j)), "y", bf16);
  return b.graph();
}
} // namespace

TEST(block_parts, columns_of_many_rows_are_summed_in_parts) {
  const ir::Graph g = columns(512, 96), now = rewrite::part_sums(g, many_workers);
  EXPECT_EQ(rewrite::parts(now).size(), 1u) << text::print(now);
  EXPECT_LT(apart(g, now), 1e-9);
  // One worker has enough, and so have many of few rows.
  EXPECT_TRUE(rewrite::parts(rewrite::part_sums(g, 1)).empty());
  EXPECT_TRUE(rewrite::parts(rewrite::part_sums(columns(32, 96), many_workers)).empty());
}

TEST(block_parts, rows_are_not) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {4, 2048}, bf16);
  auto [i, c] = ir::axes<"i c">();
  b.output(ir::map({i}, ir::sum(c, x(i, c) * x(i, c))), "y");
  EXPECT_TRUE(rewrite::parts(rewrite::part_sums(b.graph(), many_workers)).empty());
}

// Lanes side by side have neighbouring columns, and parts are kernels of their own.
TEST(block_parts, lanes_lie_along_the_columns) {
  const ir::Graph g = columns(512, 96);
  const auto d = derived(g);
  ASSERT_EQ(d.kernels.kernels.size(), 2u);
  const kernel::Kernel& k = d.kernels.kernels[0].kernel;
  EXPECT_EQ(kernel::workgroups(k), 16 * 96 / 32);
  const kernel::Fold* first = nullptr;
  for (auto& s : k.body)
    if (auto* f = std::get_if<kernel::Fold>(&s.node); f && !first) first = f;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kept.back().extent, 32); // of columns; the shares of their terms are the slower lanes
  const eval::Inputs in = rounded_inputs(g);
  auto got = simulate({d.plan, d.kernels}, in);
  EXPECT_LT(eval::difference(got["y"], filled(eval::run(g, in).at("y"))), 1e-5);
}

// Heads that share keys: what flows into keys and values is a sum over them and over all rows.
TEST(block_parts, heads_that_share_keys_are_parts) {
  AttentionSize z;
  z.heads = z.group = 2, z.rows = z.keys = 160, z.d = z.c = 32, z.causal = true;
  const ir::Graph g = rewrite::row_weights(rewrite::optimize(attention_with_backward(z)).graph),
                  now = rewrite::part_sums(g, many_workers);
  EXPECT_EQ(rewrite::parts(now).size(), 2u) << text::print(now);
  EXPECT_LT(apart(g, now), 1e-9);
  for (auto& [id, sum] : rewrite::parts(now)) EXPECT_EQ(now[id].comp()->folds.size(), 1u);
}

TEST(block_parts, a_value_turned_is_one_map) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {6, 5, 4}), s = b.input("s", {6, 4});
  const ir::Tensor w = b.input("w", {3, 4}), v = b.input("v", {3, 5});
  auto [i, j, k, n] = ir::axes<"i j k n">();
  const ir::Tensor one = ir::map({i, j, k}, ir::exp(x(i, j, k)) * s(i, k), "one"),
                   other = ir::map({k, i, j}, s(i, k) * ir::exp(x(i, j, k)), "other"),
                   third = ir::map({j, k, i}, s(i, k) + ir::exp(x(i, j, k)), "third");
  b.output(ir::map({i, j, n}, ir::sum(k, one(i, j, k) * w(n, k))), "a");
  b.output(ir::map({k, i, n}, ir::sum(j, other(k, i, j) * v(n, j))), "b");
  b.output(ir::map({k, i, n}, ir::sum(j, third(j, k, i) * v(n, j))), "c");
  const ir::Graph g = ir::canonical(b.graph()).graph, now = rewrite::turned_alike(g);
  EXPECT_EQ(now.nodes.size() + 1, g.nodes.size()) << text::print(now);
  EXPECT_LT(apart(g, now), 1e-12);
}

// Four lanes of a row bring 32 columns in 16 bytes each where they are aligned; else a lane brings its pairs.
TEST(block_parts, lanes_share_what_they_bring) {
  const auto text = [](const ir::Graph& g) { return run::cuda_source(derived(g), run::hopper_options().target); };
  auto uses = [](const std::string& s, const std::string& what) { return s.find("        " + what) != std::string::npos; };
  const std::string wide = text(product(256)), odd = text(product(100));
  EXPECT_TRUE(uses(wide, "  tang_share_quad(quads"));
  EXPECT_FALSE(uses(odd, "  tang_share_quad(quads"));
  EXPECT_NE(odd.find("tang_two_bf16(two"), std::string::npos);
}

// A kernel that may begin early touches nothing before what was started before it is complete.
TEST(block_parts, every_kernel_waits_first) {
  const target::Target t = run::hopper_options().target;
  const std::string text = run::cuda_source(derived(product(256)), t) + run::cuda_source(derived(columns(512, 96)), t);
  size_t kernels = 0;
  for (size_t at = text.find("extern \"C\" __global__"); at != std::string::npos;
       at = text.find("extern \"C\" __global__", at + 1), ++kernels) {
    const size_t waits = text.find("tang_follow();", at), end = text.find("\n}\n", at);
    ASSERT_LT(waits, end);
    const std::string before = text.substr(at, waits - at);
    for (const char* touches : {"tang_bulk_load(", "tang_bulk_store(", "atomicAdd", "[("})
      EXPECT_EQ(before.find(touches), std::string::npos) << before;
  }
  EXPECT_EQ(kernels, 3u);
}
