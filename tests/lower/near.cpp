// Where a kernel of one lane a workgroup reads and writes: copies that vectors read along, rows instead of blocks, panels
// that are laid out once, even blocks.
#include "lower/pipeline.hpp"
#include "tang/base/match.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
void each_statement(const kernel::Block& b, const std::function<void(const kernel::Stmt&)>& f) {
  for (auto& s : b) {
    f(s);
    if (auto* x = std::get_if<kernel::Loop>(&s.node)) each_statement(x->body, f);
    if (auto* x = std::get_if<kernel::If>(&s.node)) each_statement(x->then, f);
    if (auto* x = std::get_if<kernel::Pipeline>(&s.node)) each_statement(x->operands, f), each_statement(x->body, f);
  }
}

int64_t stride(const kernel::Kernel& k, const kernel::Ref& r, kernel::Var v) {
  int64_t out = 0;
  for (size_t d = 0; d < r.index.size(); ++d)
    out += kernel::coefficient(r.index[d].affine, v) * k.memories[size_t(r.memory)].strides[d];
  return out;
}

// Elements that the vectors of a kernel's statements gather, one by one.
int64_t gathered(const Derived& d) {
  int64_t n = 0;
  for (auto& l : d.program.kernels)
    each_statement(l.kernel.body, [&](const kernel::Stmt& s) {
      const auto* a = std::get_if<kernel::Apply>(&s.node);
      if (!a || a->vector < 0) return;
      int64_t points = 1;
      for (auto& x : a->axes) points *= x.extent;
      for (auto& r : a->body.refs) {
        const int64_t by = stride(l.kernel, r, a->axes[size_t(a->vector)].var);
        n += by > 1 ? points : 0;
      }
    });
  return n;
}
} // namespace

TEST(lower_near, what_lies_across_the_lanes_is_gathered_once_a_block) {
  for (int64_t columns : {32, 37}) {
    Builder b;
    auto [i, j] = axes<"i j">();
    const Tensor x = b.input("x", {40, columns}), rows = b.input("rows", {columns, 9});
    b.output(map({i, j}, x(i, j) * exp(rows(j, 2)) + rows(j, 5)), "y");
    const Graph g = b.graph();
    expect_derived(g);
    const Derived d = derive(g);
    EXPECT_LE(gathered(d), 2 * columns * kernel::workgroups(d.program.kernels[0].kernel)) << kernel::print(d.program.kernels[0].kernel);
  }
}

// A bound that names the rows, too, may be what keeps a column in range: the copy reads 0 there.
TEST(lower_near, a_copy_stays_inside_what_it_copies) {
  Builder b;
  const Axis i = axis("i", Extent(24)), j = axis("j", Extent(32));
  const Tensor x = b.input("x", {24, 32}), rows = b.input("rows", {20, 7});
  b.output(map({i, j}, or_else(masked(Index(j) + Index(i) <= 19, x(i, j) * rows(Index(j), 3)), x(i, j))), "y");
  expect_derived(b.graph());
}

// An epilogue of several results keeps rows of what they share.
TEST(lower_near, an_epilogue_goes_row_by_row) {
  for (int64_t rows : {130, 198}) {  // the last block ends early, or not
    Builder b;
    auto [i, j, k] = axes<"i j k">();
    const Tensor x = b.input("x", {rows, 48}), w = b.input("w", {48, 512}), z = b.input("z", {rows, 512});
    const Tensor s = map({i, j}, sum(k, x(i, k) * w(k, j)), "s");
    const Scalar gate = 1.0 / (1.0 + exp(0.0 - s(i, j)));
    b.output(map({i, j}, gate * s(i, j)), "silu");
    b.output(map({i, j}, gate * (1.0 - gate) * z(i, j)), "slope");
    b.output(map({i, j}, gate * z(i, j)), "gated");
    const Graph g = b.graph();
    expect_derived(g, {}, {}, 1e-5);
    const Derived d = derive(g);
    const lower::Lowered& last = d.program.kernels.back();
    // One block of sums, and a row of what is handed on.
    int64_t blocks = 0, rows_of = 0;
    for (auto& m : last.kernel.memories) {
      if (m.home == kernel::Home::global) continue;
      blocks += m.size() >= 64 * 128;
      rows_of += m.size() == m.shape.back();
    }
    EXPECT_EQ(blocks, 1) << kernel::print(last.kernel);
    EXPECT_GE(rows_of, 1) << kernel::print(last.kernel);
  }
}

TEST(lower_near, panels_that_several_sequences_read_are_laid_out_once) {
  Builder b;
  auto [n, i, j, k] = axes<"n i j k">();
  const Tensor x = b.input("x", {8, 32, 48}), w = b.input("w", {64, 48});
  b.output(map({n, i, j}, sum(k, x(n, i, k) * w(j, k))), "y");
  const Graph g = b.graph();
  expect_derived(g);
  int panels = 0;
  for (auto& l : derive(g).program.kernels) panels += l.schedule.rfind("panels", 0) == 0;
  EXPECT_EQ(panels, 1);
}

// A domain of two parts lays its panels out once, and its kernel names them once (simulate() sees to it).
TEST(lower_near, parts_of_a_domain_name_their_panels_once) {
  Builder b;
  auto [i, j, d, e] = axes<"i j d e">();
  const Tensor q = b.input("q", {37, 16}), k = b.input("k", {37, 16}), v = b.input("v", {37, 16});
  const Tensor s = map({i, j}, masked(j <= i, masked(j > i - 20 || j < 4, sum(d, q(i, d) * k(j, d)))), "s");
  const Tensor top = map({i}, max(j, s(i, j)), "top");
  const Tensor p = map({i, j}, exp(s(i, j) - top(i)), "p");
  b.output(map({i, e}, sum(j, p(i, j) * v(j, e)) / sum(j, p(i, j))), "y");
  const Graph g = b.graph();
  const target::Target gpu = target::cuda_target();
  const Derived first = derive(g, {}, gpu);
  schedule::Schedule small;
  for (auto& step : first.plan.steps)
    for (auto& m : step.group.members) {
      auto& f = small.groups[schedule::key(*first.plan.graph, m.node)];
      f.rows = 4, f.vectors = 1, f.tile = {{0, 16}, {1, 32}};
    }
  const Derived d2 = derive(g, small, gpu);
  const eval::Inputs in = random_inputs(g);
  EXPECT_LT(eval::difference(simulate(d2, in).at("y"), filled(eval::run(g, in).at("y"))), 1e-5);
}

// Terms over a batch and a sequence: a few hundred at a time, and no half-empty block of heads.
TEST(lower_near, deep_sums_are_cut_and_heads_are_dealt_evenly) {
  Builder b;
  auto [n, t, g1, h, e, m] = axes<"n t g h e m">();
  const Axis a = axis("a"), r = axis("r");
  const Tensor x = b.input("x", {8, 160, 32}), d = b.input("d", {3, 3, 8, 160, 64});
  b.output(map({g1, h, e, m}, sum({n, t}, d(g1, h, n, t, e) * x(n, t, m))), "dw");
  const Tensor y = b.input("y", {96, 48}), w = b.input("w", {3, 3, 64, 48});
  b.output(map({g1, h, r, e}, sum(a, y(r, a) * w(g1, h, e, a))), "q");
  const Graph g = b.graph();
  expect_derived(g, {}, {}, 1e-5);
  const Derived of = derive(g);
  for (auto& l : of.program.kernels) {
    each_statement(l.kernel.body, [&](const kernel::Stmt& s) {
      const auto* c = std::get_if<kernel::Contract>(&s.node);
      if (!c) return;
      int64_t depth = 1;
      for (auto& k : c->k) depth *= k.extent;
      EXPECT_LE(depth, 512) << l.label;
    });
    for (auto& of_grid : l.kernel.grid)
      EXPECT_TRUE(of_grid.extent != 3 || 3 % of_grid.step == 0) << l.label << ": blocks of " << of_grid.step;
  }
}

// A sum of two terms whose points live in half of the features, as a rotation's gradient has it: nothing outside of the
// table is read, and what has no term is 0.
TEST(lower_near, bounds_on_points_keep_reads_in_range) {
  for (int64_t half : {4, 11, 32}) {
    Builder b;
    const Axis h = axis("h", Extent(5)), i = axis("i", Extent(6)), f = axis("f", Extent(2 * half)), s = axis("s", Extent(2));
    const Tensor d = b.input("d", {5, 6, 2 * half}), c = b.input("c", {6, half}), l = b.input("l", {5, 6});
    const Scalar term = d.at({h, i, Index(f) + half * Index(s)}) * c.at({i, f}) * (to_real(iota(s)) + 1.0);
    b.output(map({h, i, f}, sum(s, masked(Index(f) <= half - 1, masked(l(h, i) < 0.25, term)))), "y");
    const Graph g = b.graph();
    expect_derived(g);
    for (auto& k : derive(g).program.kernels)
      each_statement(k.kernel.body, [&](const kernel::Stmt& x) {
        const auto* fold = std::get_if<kernel::Fold>(&x.node);
        for (auto& r : fold ? fold->body.refs : std::vector<kernel::Ref>())
          EXPECT_FALSE(r.checked) << kernel::print(k.kernel);
      });
  }
}
