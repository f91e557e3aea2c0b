// What kernels of a block and of attention's variants share: results of one tile, keys that a block does not
// have, and integers that several kernels ask for beforehand.
#include "backward/tensor_roles.hpp"
#include "tang/grad/surface.hpp"
#include "tang/ir/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/run/cuda.hpp"
#include "tang/text/print.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr auto bf16 = ir::Format::bf16;

run::Derivation derived(const ir::Graph& g) {
  run::Options o = run::hopper_options();
  o.operands = bf16;
  return run::derive(g, o);
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// One product, and maps of it that share a function: each is stored.
ir::Graph gated(int64_t rows, int64_t width) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {rows, 64}, bf16), w = b.input("w", {width, 64}, bf16);
  const ir::Tensor u = b.input("u", {rows, width}, bf16), d = b.input("d", {rows, width}, bf16);
  auto [i, j, k] = ir::axes<"i j k">();
  const ir::Tensor s = ir::map({i, j}, ir::sum(k, x(i, k) * w(j, k)), "s");
  b.output(ir::map({i, j}, ir::silu(s(i, j)) * u(i, j)), "a", bf16);
  b.output(ir::map({i, j}, d(i, j) * ir::silu(s(i, j))), "b", bf16);
  b.output(ir::map({i, j}, ir::sigmoid(s(i, j)) * u(i, j) * d(i, j)), "c", bf16);
  return b.graph();
}

const kernel::role::Flush* flush_of(const kernel::role::Block& b, int& found) {
  const kernel::role::Flush* out = nullptr;
  for (auto& s : b) {
    if (auto* f = std::get_if<kernel::role::Flush>(&s.node)) out = f, ++found;
    if (auto* w = std::get_if<kernel::role::Works>(&s.node))
      if (auto* f = flush_of(w->body, found)) out = f;
  }
  return out;
}

ir::Graph of_documents(int64_t rows, eval::Inputs& in) {
  ir::Builder b;
  const ir::Tensor q = b.input("q", {1, 2, rows, 32}, bf16), k = b.input("k", {1, 2, rows, 32}, bf16),
                   v = b.input("v", {1, 2, rows, 32}, bf16);
  const ir::Tensor start = b.input("start", {1, rows}, ir::Format::i32),
                   end = b.input("end", {1, rows}, ir::Format::i32);
  models::AttentionOptions o;
  o.mask = models::causal() && models::key_range(start, end);
  const auto a = models::attention(q, k, v, o);
  const auto g = diff::vjp(a.out, b.input("dout", a.out.shape(), bf16), {q, k, v});
  b.output(a.out, "out", bf16);
  b.output(g[0], "dq", bf16), b.output(g[1], "dk", bf16), b.output(g[2], "dv", bf16);
  std::vector<int64_t> first, last;
  for (int64_t i = 0; i < rows; ++i) first.push_back(i / 150 * 150), last.push_back(std::min(rows, i / 150 * 150 + 150));
  const ir::Graph graph = b.graph();
  in = random_inputs(graph, {{"start", eval::indices({1, rows}, first)}, {"end", eval::indices({1, rows}, last)}});
  for (auto& n : graph.nodes)
    if (auto* x = n.input(); x && expr::type_of(x->format) == expr::Type::real)
      for (double& r : in[n.name].r) r = ir::rounded(r, x->format);
  return graph;
}
} // namespace

// Functions that results share are evaluated once an element, and each of their operands is loaded once.
TEST(block_stores, results_of_one_tile_are_one_statement) {
  for (auto [rows, width] : {std::pair<int64_t, int64_t>{128, 192}, {100, 88}}) {
    const ir::Graph g = gated(rows, width);
    const auto d = derived(g);
    ASSERT_EQ(d.kernels.kernels.size(), 1u);
    const lower::Lowered& l = d.kernels.kernels[0];
    ASSERT_TRUE(l.roles);
    const auto p = kernel::expand_roles(l.kernel, *l.roles);
    ASSERT_TRUE(bool(p)) << p.why();
    int found = 0;
    const auto* flush = flush_of(p->math, found);
    ASSERT_TRUE(flush);
    EXPECT_EQ(found, 1);
    EXPECT_EQ(flush->what.dst.size(), 3u);
    EXPECT_EQ(flush->maps.size(), 3u);
    EXPECT_EQ(flush->what.body.refs.size(), 3u); // the product's tile, u and d
    const std::string all = run::cuda_source(d, run::hopper_options().target),
                      text = all.substr(all.find("extern \"C\" __global__"));
    EXPECT_EQ(3 * count(text, "tang_fast_exp2("), count(text, "tang_bulk_store(")) << text;
    const eval::Inputs in = rounded_inputs(g);
    auto got = simulate({d.plan, d.kernels}, in, kernel::Order::reverse,
                        [&](const lower::Lowered& k, const std::vector<kernel::Buffer>& globals) {
                          expect_roles(k, *k.roles, globals);
                        });
    for (auto& [name, raw] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(raw)), 6e-2) << name;
  }
}

// What a later result reads of an earlier one is in memory only when that one was stored.
TEST(block_stores, results_of_other_widths_are_stored_alone) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {128, 64}, bf16), w = b.input("w", {128, 64}, bf16);
  auto [i, j, k] = ir::axes<"i j k">();
  const ir::Tensor s = ir::map({i, j}, ir::sum(k, x(i, k) * w(j, k)), "s");
  b.output(ir::map({i, j}, ir::silu(s(i, j))), "a", bf16);
  b.output(ir::map({i, j}, ir::sigmoid(s(i, j))), "b", ir::Format::f32);
  const ir::Graph g = b.graph();
  run::Options o = run::hopper_options();
  const auto d = run::derive(g, o);
  for (auto& l : d.kernels.kernels) {
    if (!l.roles) continue;
    const auto p = kernel::expand_roles(l.kernel, *l.roles);
    ASSERT_TRUE(bool(p)) << p.why();
    int found = 0;
    const auto* flush = flush_of(p->math, found);
    ASSERT_TRUE(flush);
    EXPECT_EQ(flush->what.dst.size(), 1u);
  }
  const eval::Inputs in = rounded_inputs(g);
  auto got = simulate({d.plan, d.kernels}, in);
  for (auto& [name, raw] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(raw)), 6e-2) << name;
}

// Sums by key: one test a key, of the keys that a warp's part of the block has.
TEST(block_stores, sums_of_absent_keys_are_skipped) {
  ir::Builder b;
  const ir::Tensor q = b.input("q", {1, 2, 256, 16}, bf16), k = b.input("k", {1, 2, 256, 16}, bf16),
                   v = b.input("v", {1, 2, 256, 16}, bf16), bias = b.input("bias", {8, 2});
  models::AttentionOptions o;
  o.changes.push_back(models::relative_bias(bias, {64, true}));
  const auto a = models::attention(q, k, v, o);
  const auto g = diff::vjp(a.out, b.input("dout", a.out.shape(), bf16), {bias});
  b.output(a.out, "out", bf16), b.output(g[0], "dbias");
  const run::Options options = run::hopper_options();
  const std::string text = run::cuda_source(run::derive(b.graph(), options), options.target);
  EXPECT_EQ(count(text, "__reduce_min_sync(0xffffffffu, (int)least)"), 1u); // one block of the loop
  for (int key = 0; key < 8; ++key) {
    const std::string n = std::to_string(key);
    EXPECT_EQ(count(text, " <= " + n + " && " + n + " <= hi"), 1u) << n;
  }
}

// Where documents begin and end is asked for once, for the forward pass and for its gradient.
TEST(block_stores, extrema_of_inputs_are_computed_once) {
  eval::Inputs in;
  const ir::Graph g = of_documents(456, in);
  const auto d = run::derive(g, run::hopper_options());
  int before = 0, readers = 0;
  std::set<int> made;
  for (auto& l : d.kernels.kernels)
    if (l.schedule.find("extrema") == 0) {
      ++before;
      for (auto& a : l.arguments)
        if (auto* t = std::get_if<int>(&a.what)) made.insert(*t);
    }
  std::set<int> steps;
  for (auto& l : d.kernels.kernels)
    for (auto& a : l.arguments)
      if (auto* t = std::get_if<int>(&a.what); t && !a.written && made.count(*t)) steps.insert(l.step), ++readers;
  EXPECT_EQ(before, 1);
  EXPECT_EQ(made.size(), 4u); // the least and the greatest of both
  EXPECT_GE(steps.size(), 2u) << "the forward pass and a gradient read them";
  EXPECT_EQ(readers, 8);
  for (auto& l : d.kernels.kernels) // nothing else lies where they do
    for (auto& a : l.arguments)
      if (auto* t = std::get_if<int>(&a.what); t && a.written && l.schedule.find("extrema") != 0) {
        EXPECT_FALSE(made.count(*t)) << l.label;
      }
  auto got = simulate({d.plan, d.kernels}, in);
  for (auto& [name, raw] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(raw)), 6e-2) << name;
}

// Rows that end with a block: nothing beyond the last document is read.
TEST(block_stores, documents_that_end_with_a_block) {
  eval::Inputs in;
  const ir::Graph g = of_documents(384, in);
  const auto d = run::derive(g, run::hopper_options());
  auto got = simulate({d.plan, d.kernels}, in);
  for (auto& [name, raw] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(raw)), 6e-2) << name;
}

// Parts of a sum of columns keep the format of numbers, however many there are.
TEST(block_stores, parts_of_columns_stay_wide) {
  ir::Builder b;
  const ir::Tensor x = b.input("x", {2048, 96}, bf16), y = b.input("y", {2048, 96}, bf16);
  auto [i, c] = ir::axes<"i c">();
  b.output(ir::map({c}, ir::sum(i, x(i, c) * y(i, c))), "s", bf16);
  const auto d = derived(b.graph());
  ASSERT_EQ(d.kernels.kernels.size(), 2u);
  for (auto& m : d.kernels.kernels[0].kernel.memories)
    if (m.access != kernel::Access::read && m.home == kernel::Home::global) {
      EXPECT_EQ(m.format, ir::Format::f32);
      EXPECT_EQ(m.size(), 64 * 96);
    }
}

// Few blocks of unequal loops: a worker has one team, whose longest loop ends sooner. Many blocks, and equal
// loops, have two or three.
TEST(block_stores, few_blocks_of_unequal_loops_have_a_worker_each) {
  auto teams = [](int64_t heads, bool causal) {
    ir::Builder b;
    const ir::Tensor q = b.input("q", {1, heads, 512, 64}, bf16), k = b.input("k", {1, heads, 512, 64}, bf16),
                     v = b.input("v", {1, heads, 512, 64}, bf16);
    models::AttentionOptions o;
    if (causal) o.mask = models::causal();
    const auto a = models::attention(q, k, v, o);
    const auto g = diff::vjp(a.out, b.input("dout", a.out.shape(), bf16), {q, k, v});
    b.output(a.out, "out", bf16);
    b.output(g[0], "dq", bf16), b.output(g[1], "dk", bf16), b.output(g[2], "dv", bf16);
    std::vector<int> out;
    for (auto& l : run::derive(b.graph(), run::hopper_options()).kernels.kernels)
      if (l.roles) out.push_back(l.roles->math);
    return out;
  };
  EXPECT_EQ(teams(8, true), (std::vector<int>{1, 1, 1}));
  for (int n : teams(64, true)) EXPECT_GT(n, 1);
  for (int n : teams(8, false)) EXPECT_GT(n, 1);
}
