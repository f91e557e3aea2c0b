// Products with few rows, whose operands subgroups multiply as small matrices: right in the simulator, and taken only where
// every operand lies so.
#include "lower/pipeline.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/surface.hpp"
#include "tang/kernel/legalize.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
using After = std::function<Scalar(Builder&, const Scalar&, const Axis&, const Axis&)>;

Graph product(int64_t m, int64_t n, int64_t k, Format f = Format::bf16, const After& after = {}) {
  Builder b;
  Tensor x = b.input("x", {m, k}, f), w = b.input("w", {n, k}, f);
  auto [i, j, l] = axes<"i j l">();
  const Scalar s = sum(l, x(i, l) * w(j, l));
  b.output(map({i, j}, after ? after(b, s, i, j) : s), "y");
  return b.graph();
}

Graph gated(int64_t m, int64_t n, int64_t k) {
  Builder b;
  Tensor x = b.input("x", {m, k}, Format::bf16), g = b.input("g", {n, k}, Format::bf16), u = b.input("u", {n, k}, Format::bf16);
  auto [i, j, l] = axes<"i j l">();
  const Scalar gate = sum(l, x(i, l) * g(j, l)), up = sum(l, x(i, l) * u(j, l));
  b.output(map({i, j}, gate / (1.0 + exp(-gate)) * up), "y");
  return b.graph();
}

Graph batched(int64_t h, int64_t m, int64_t n, int64_t k) {
  Builder b;
  Tensor x = b.input("x", {m, h, k}, Format::bf16), w = b.input("w", {h, n, k}, Format::bf16);
  auto [i, j, l, a] = axes<"i j l a">();
  b.output(map({i, a, j}, sum(l, x(i, a, l) * w(a, j, l))), "y");
  return b.graph();
}

Derived legal(const Graph& g, const schedule::Schedule& s = {}) {
  const target::Target t = target::hopper_target();
  Derived d = derive(g, s, t);
  for (auto& l : d.program.kernels)
    if (!l.roles) l.kernel = kernel::legalize(l.kernel, t);
  return d;
}

const kernel::Fold* shared(const kernel::Kernel& k) {
  for (auto& s : k.body)
    if (auto* f = std::get_if<kernel::Fold>(&s.node); f && f->deal.matrix) return f;
  return nullptr;
}

eval::Inputs rounded(const Graph& g) {
  eval::Inputs in = random_inputs(g);
  for (auto& n : g.nodes)
    if (auto* x = n.input())
      for (double& v : in[n.name].r) v = expr::rounded(v, x->format);
  return in;
}

void expect_shared(const Graph& g, const schedule::Schedule& s = {}) {
  const Derived d = legal(g, s);
  ASSERT_EQ(d.program.kernels.size(), 1u);
  const kernel::Kernel& k = d.program.kernels[0].kernel;
  EXPECT_TRUE(shared(k)) << kernel::print(k);
  const eval::Inputs in = rounded(g);
  auto got = simulate(d, in);
  for (auto& [name, a] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(a)), 2e-6) << name << "\n" << kernel::print(k);
}

bool taken(const Graph& g, const schedule::Schedule& s = {}) { return shared(legal(g, s).program.kernels[0].kernel); }
} // namespace

TEST(few_rows, subgroups_share_the_terms) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{8, 64, 256}, {5, 32, 96}, {48, 24, 1024}, {17, 48, 4096}, {40, 8, 288}})
    expect_shared(product(m, n, k));
  expect_shared(product(8, 64, 256, Format::f16));
  expect_shared(product(64, 8, 256)); // the other way round
}

TEST(few_rows, maps_and_several_sums_follow) {
  expect_shared(gated(8, 32, 256));
  expect_shared(gated(20, 16, 512));
  expect_shared(batched(3, 6, 32, 128));
  expect_shared(product(8, 64, 128, Format::bf16, [](Builder& b, const Scalar& s, const Axis& i, const Axis& j) {
    return s + b.input("r", {8, 64}, Format::bf16)(i, j);
  }));
}

TEST(few_rows, the_columns_of_a_workgroup_are_a_field) {
  const Graph g = product(8, 64, 256);
  const Derived d = legal(g);
  schedule::Schedule s;
  s.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)].tile[1] = 32;
  expect_shared(g, s);
  EXPECT_EQ(kernel::workgroups(legal(g, s).program.kernels[0].kernel), 2);
}

TEST(few_rows, others_have_another_form) {
  EXPECT_FALSE(taken(product(3, 64, 256)));    // folded row by row
  EXPECT_FALSE(taken(product(49, 64, 256)));   // warpgroups
  EXPECT_FALSE(taken(product(8, 60, 256)));    // columns are no blocks
  EXPECT_FALSE(taken(product(8, 64, 250)));    // terms are no runs
  EXPECT_FALSE(taken(product(8, 64, 256, Format::f32)));
  Builder b; // terms lie apart
  Tensor x = b.input("x", {8, 256}, Format::bf16), w = b.input("w", {256, 64}, Format::bf16);
  auto [i, j, l] = axes<"i j l">();
  b.output(map({i, j}, sum(l, x(i, l) * w(l, j))), "y");
  EXPECT_FALSE(taken(b.graph()));
}

TEST(few_rows, parts_are_read_after_they_are_written) {
  const kernel::Kernel good = legal(product(8, 64, 128)).program.kernels[0].kernel;
  EXPECT_TRUE(kernel::problems(good).empty());
  kernel::Kernel less = good;
  less.body.erase(std::remove_if(less.body.begin(), less.body.end(), [](auto& s) { return std::holds_alternative<kernel::Barrier>(s.node); }),
                  less.body.end());
  ASSERT_EQ(less.body.size() + 1, good.body.size());
  for (auto* k : {&good, static_cast<const kernel::Kernel*>(&less)}) {
    std::vector<kernel::Buffer> globals;
    for (auto& m : k->memories)
      if (m.home == kernel::Home::global) globals.push_back({std::vector<double>(size_t(m.size()), 0.5), std::vector<int64_t>(size_t(m.size()), 1)});
    EXPECT_EQ(kernel::simulate(*k, globals).faults.empty(), k == &good);
  }
}

// Long sums of wide blocks: workgroups of a cluster have a part of the terms each, and a lane a result adds what they have.
TEST(few_rows, workgroups_of_a_cluster_share_the_terms) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{48, 128, 2048}, {17, 48, 4096}, {8, 64, 8192}}) {
    const Graph g = product(m, n, k);
    EXPECT_GT(legal(g).program.kernels[0].kernel.cluster, 1) << m;
    expect_shared(g);
  }
  expect_shared(gated(20, 64, 4096));
  const kernel::Kernel good = legal(product(48, 128, 2048)).program.kernels[0].kernel;
  int far = 0;
  for (size_t s = 0; s < good.body.size(); ++s) {
    auto* b = std::get_if<kernel::Barrier>(&good.body[s].node);
    if (!b) continue;
    far += b->team == kernel::Team::cluster;
    kernel::Kernel less = good;
    less.body.erase(less.body.begin() + long(s));
    std::vector<kernel::Buffer> globals;
    for (auto& m : less.memories)
      if (m.home == kernel::Home::global) globals.push_back({std::vector<double>(size_t(m.size()), 0.5), std::vector<int64_t>(size_t(m.size()), 1)});
    EXPECT_FALSE(kernel::simulate(less, globals).faults.empty()) << s;
  }
  EXPECT_EQ(far, 1);
  // What the workgroups have of a result goes to the one that adds it, and is nowhere else.
  kernel::Kernel moved = good;
  int dealt = 0;
  for (auto& s : moved.body)
    if (auto* f = std::get_if<kernel::Fold>(&s.node))
      for (auto& r : f->body.refs)
        if (moved.memories[size_t(r.memory)].lanes == kernel::Lanes::partial) {
          ++dealt;
          kernel::Affine& line = r.index[1].affine; // of another lane
          line = kernel::constant(47) - line;
        }
  ASSERT_EQ(dealt, 1);
  std::vector<kernel::Buffer> globals;
  for (auto& m : moved.memories)
    if (m.home == kernel::Home::global) globals.push_back({std::vector<double>(size_t(m.size()), 0.5), std::vector<int64_t>(size_t(m.size()), 1)});
  EXPECT_FALSE(kernel::simulate(moved, globals).faults.empty());
}
