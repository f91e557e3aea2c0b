// Derived kernels for workgroups of many lanes, in the simulator: right, free of lane races, and inside the
// fast memory.
#include "lower/pipeline.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/kernel/legalize.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
target::Target lanes(int workgroup, int subgroup, int64_t bytes) {
  target::Target t = target::cuda_target();
  t.workgroup_limit = workgroup;
  t.lanes = subgroup;
  t.fast_memory = t.near_memory = bytes;
  t.workers = 4;
  return t;
}

Derived legal(const Graph& g, const target::Target& t) {
  Derived d = derive(g, {}, t);
  for (auto& l : d.program.kernels) l.kernel = kernel::legalize(l.kernel, t);
  return d;
}

void expect_right(const Graph& g, const target::Target& t, const eval::Inputs& given = {}) {
  const eval::Inputs inputs = random_inputs(g, given);
  const Derived d = legal(g, t);
  for (auto& l : d.program.kernels)
    EXPECT_LE(kernel::tile_bytes(l.kernel), t.fast_memory) << l.label << " " << l.schedule;
  auto got = simulate(d, inputs);
  for (auto& [name, a] : eval::run(g, inputs))
    EXPECT_LT(eval::difference(got[name], filled(a)), 2e-6) << name << " " << t.workgroup_limit;
}

Graph attention(int64_t n, int64_t m, int64_t d, int64_t c) {
  Builder b;
  Tensor q = b.input("q", {2, n, d}), k = b.input("k", {2, m, d}), v = b.input("v", {2, m, c});
  auto [h, i, j, x, o] = axes<"h i j x o">();
  Scalar s = masked(j <= i, sum(x, q(h, i, x) * k(h, j, x)) * 0.5), w = exp(s - max(j, s));
  b.output(map({h, i, o}, ratio(sum(j, w * v(h, j, o)), sum(j, w))), "y");
  return b.graph();
}

Graph matmul(int64_t m, int64_t n, int64_t k) {
  Builder b;
  Tensor x = b.input("x", {m, k}), w = b.input("w", {k, n}), c = b.input("c", {n});
  auto [i, j, l] = axes<"i j l">();
  b.output(map({i, j}, relu(sum(l, x(i, l) * w(l, j)) + c(j))), "y");
  return b.graph();
}

Graph rows(int64_t m, int64_t n) {
  Builder b;
  Tensor x = b.input("x", {m, n});
  auto [i, j] = axes<"i j">();
  Scalar e = exp(x(i, j) - max(j, x(i, j)));
  b.output(map({i, j}, e / sum(j, e)), "softmax");
  b.output(map({i}, fold(argmax(), j, {x(i, j), iota(j)})[1]), "at");
  b.output(map({j}, sum(i, x(i, j))), "columns");
  return b.graph();
}

const std::vector<target::Target>& targets() {
  static const std::vector<target::Target> all = {lanes(6, 3, 24 << 10), lanes(64, 8, 24 << 10),
                                                  target::cuda_target()};
  return all;
}

void barriers(kernel::Block& b, std::vector<std::pair<kernel::Block*, size_t>>& out) {
  for (size_t s = 0; s < b.size(); ++s) {
    if (std::holds_alternative<kernel::Barrier>(b[s].node)) out.emplace_back(&b, s);
    if (auto* l = std::get_if<kernel::Loop>(&b[s].node)) barriers(l->body, out);
    if (auto* i = std::get_if<kernel::If>(&b[s].node)) barriers(i->then, out);
  }
}
} // namespace

TEST(workgroups, attention) {
  for (auto& t : targets())
    for (auto [n, m, d, c] : {std::array<int64_t, 4>{9, 9, 4, 3}, {40, 40, 8, 8}, {33, 150, 5, 20}})
      expect_right(attention(n, m, d, c), t);
}

TEST(workgroups, matmul_of_odd_sizes) {
  for (auto& t : targets())
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 40, 70}, {13, 17, 19}, {64, 40, 33}, {100, 72, 50}})
      expect_right(matmul(m, n, k), t);
}

TEST(workgroups, folds_over_rows_and_columns) {
  for (auto& t : targets())
    for (int64_t n : {1, 7, 100, 700}) expect_right(rows(3, n), t);
}

TEST(workgroups, gathers_and_padding) {
  for (auto& t : targets()) {
    Builder b;
    Tensor table = b.input("table", {9, 5}), ids = b.input("ids", {6}, Format::i32),
           x = b.input("x", {2, 3, 11}), f = b.input("f", {4, 3, 3});
    auto [tt, d] = axes<"t d">();
    b.output(map({tt, d}, table(ids(tt), d) * 2), "e");
    auto n = axis("n"), o = axis("o"), ci = axis("ci"), r = axis("r"), a = axis("a", Extent(11));
    b.output(map({n, o, a}, sum({ci, r}, x.at_or(0, {n, ci, Index(a) + Index(r) - Index(1)}) * f(o, ci, r))),
             "y");
    expect_right(b.graph(), t, {{"ids", eval::indices({6}, {0, 8, 3, 3, 1, 7})}});
  }
}

namespace {
Graph norms(int64_t m, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, n}, f), gain = b.input("gain", {n});
  auto [i, j] = axes<"i j">();
  const Scalar mean = sum(j, x(i, j)) / double(n), variance = sum(j, square(x(i, j) - mean)) / double(n);
  b.output(map({i, j}, (x(i, j) - mean) / sqrt(variance + 1e-5) * gain(j)), "y");
  return b.graph();
}

Graph weights(int64_t m, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, n}, f);
  auto [i, j] = axes<"i j">();
  Scalar e = exp(x(i, j) - max(j, x(i, j)));
  b.output(map({i, j}, e / sum(j, e)), "y");
  b.output(map({i}, max(j, x(i, j)) + log(sum(j, e))), "lse");
  return b.graph();
}

Graph places(int64_t m, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, n}, f);
  auto [i, j] = axes<"i j">();
  const auto s = fold(argmax(), j, {x(i, j), iota(j)});
  b.output(map({i}, s[0]), "top");
  b.output(map({i}, s[1]), "at");
  const auto w = fold(welford(), j, {1.0, x(i, j), 0.0});
  b.output(map({i}, w[2] / w[0]), "variance");
  return b.graph();
}

// Values that bf16 holds, with ties.
eval::Array coarse(int64_t m, int64_t n) {
  eval::Array a = random_array({m, n}, 7);
  for (double& v : a.r) v = expr::rounded(v, Format::bf16);
  return a;
}
} // namespace

// Rows in registers of one lane, of some lanes of a subgroup, of several subgroups, and too long for registers.
TEST(workgroups, rows_dealt_to_teams) {
  const target::Target t = target::cuda_target();
  for (auto [m, n] : {std::pair<int64_t, int64_t>{3, 8}, {1, 9}, {70, 24}, {5, 17}, {300, 64}, {33, 576}, {2, 1000}, {3, 8191}, {2, 8192}, {1, 8193}, {1, 70000}})
    for (Format f : {Format::f32, Format::bf16})
      for (const Graph& g : {norms(m, n, f), weights(m, n, f), places(m, n, f)}) {
        expect_right(g, t, {{"x", coarse(m, n)}});
        if (m * n > 20000) break; // the others are as long
      }
}

TEST(workgroups, a_row_is_read_once_into_registers) {
  const target::Target t = target::cuda_target();
  const Derived d = legal(norms(2, 8192, Format::bf16), t);
  ASSERT_EQ(d.program.kernels.size(), 1u);
  const kernel::Kernel& k = d.program.kernels[0].kernel;
  EXPECT_EQ(k.lanes, 256);
  int reads = 0;
  for (auto& s : k.body) {
    const kernel::Body* b = nullptr;
    if (auto* a = std::get_if<kernel::Apply>(&s.node)) b = &a->body;
    if (auto* f = std::get_if<kernel::Fold>(&s.node)) b = &f->body;
    for (size_t r = 0; b && r < b->refs.size(); ++r) {
      const kernel::Memory& m = k.memories[size_t(b->refs[r].memory)];
      reads += m.home == kernel::Home::global && (b->refs[r].memory == 0 || m.format == Format::bf16);
    }
  }
  EXPECT_EQ(reads, 1) << kernel::print(k);
  EXPECT_LE(kernel::tile_bytes(k), 256); // parts of a fold; the rows lie in registers
}

// Also where a block has more rows than columns.
TEST(workgroups, a_row_divides_once) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{300, 64}, {300, 24}, {3, 8192}}) {
    Builder b;
    Tensor x = b.input("x", {m, n}, Format::bf16);
    auto [i, j] = axes<"i j">();
    const Scalar e = exp(x(i, j));
    b.output(map({i, j}, ratio(e, sum(j, e))), "y");
    const Derived d = legal(b.graph(), target::cuda_target());
    int divisions = 0;
    for (auto& l : d.program.kernels)
      for (auto& s : l.kernel.body)
        if (auto* a = std::get_if<kernel::Apply>(&s.node))
          for (auto id : expr::schedule(*l.kernel.pool, a->body.values)) {
            const expr::Term& t = (*l.kernel.pool)[id];
            if (t.op != expr::Op::ratio) continue;
            ++divisions;
            EXPECT_EQ((*l.kernel.pool)[t.args[0]].op, expr::Op::literal) << kernel::print(l.kernel);
          }
    EXPECT_EQ(divisions, 1);
  }
}

TEST(workgroups, a_register_that_another_lane_wrote_is_a_fault) {
  const target::Target t = target::cuda_target();
  Derived d = legal(norms(2, 8192, Format::bf16), t);
  kernel::Kernel k = d.program.kernels[0].kernel;
  auto* last = std::get_if<kernel::Apply>(&k.body.back().node);
  ASSERT_TRUE(last);
  last->deal.run /= 2;
  std::vector<kernel::Buffer> globals;
  for (auto& m : k.memories)
    if (m.home == kernel::Home::global)
      globals.push_back({std::vector<double>(size_t(m.size()), 0.5), std::vector<int64_t>(size_t(m.size()), 1)});
  bool raced = false;
  for (auto& f : kernel::simulate(k, globals).faults) raced |= f.kind == kernel::Fault::lane_race;
  EXPECT_TRUE(raced);
}

// Without one barrier, lanes race, but where it only keeps a global that may lie in a read one's place.
TEST(workgroups, every_barrier_of_derived_kernels_is_needed) {
  target::Target t = lanes(64, 8, 24 << 10);
  int tried = 0, caught = 0;
  for (const Graph& g : {attention(33, 50, 8, 8), matmul(40, 30, 300), rows(3, 100), rows(3, 1000), rows(3, 101)}) {
    t.exchanges = tried == 0 || !t.exchanges; // rows by exchanging registers, and through shared memory
    for (auto& l : legal(g, t).program.kernels) {
      std::vector<std::pair<kernel::Block*, size_t>> at;
      barriers(l.kernel.body, at);
      for (auto& [block, n] : at) {
        const kernel::Stmt taken = (*block)[n], next = (*block)[n + 1];
        block->erase(block->begin() + long(n));
        std::vector<kernel::Buffer> globals;
        for (auto& m : l.kernel.memories)
          if (m.home == kernel::Home::global) {
            globals.push_back(
                {std::vector<double>(size_t(m.size()), 0.5), std::vector<int64_t>(size_t(m.size()), 1)});
          }
        bool raced = false, stores = false;
        for (auto& f : kernel::simulate(l.kernel, globals).faults)
          raced |= f.kind == kernel::Fault::lane_race;
        if (auto* a = std::get_if<kernel::Apply>(&next.node))
          for (auto& d : a->dst) stores |= l.kernel.memories[size_t(d.memory)].home == kernel::Home::global;
        EXPECT_TRUE(raced || stores) << l.label << " barrier " << n << "\n" << kernel::print(l.kernel);
        block->insert(block->begin() + long(n), taken);
        ++tried, caught += raced;
      }
    }
  }
  EXPECT_GE(tried, 12);
  EXPECT_GE(caught, tried * 3 / 4);
}

// A block of columns is whole panels however little memory there is; else panels are narrower, or it is refused.
TEST(workgroups, blocks_that_are_cut_end_where_panels_do) {
  int ran = 0;
  for (int vectors : {1, 4})
    for (int64_t bytes : {2 << 10, 10 << 10, 16 << 10, 42 << 10}) {
      target::Target t = lanes(64, 32, bytes);
      t.block_rows = 8, t.block_vectors = vectors;
      for (const Graph& g : {attention(70, 300, 64, 64), matmul(40, 300, 50)}) {
        try {
          expect_right(g, t);
          ++ran;
        } catch (const Error&) {
          EXPECT_EQ(bytes, 2 << 10);
        }
      }
    }
  EXPECT_GE(ran, 14);
}

// A lane writes over what it read itself, if anything.
TEST(workgroups, rows_of_a_subgroup_need_no_barrier) {
  for (auto& l : legal(norms(300, 64, Format::bf16), target::cuda_target()).program.kernels) {
    std::vector<std::pair<kernel::Block*, size_t>> at;
    barriers(l.kernel.body, at);
    EXPECT_TRUE(at.empty()) << kernel::print(l.kernel);
  }
}

TEST(workgroups, blocks_are_cut_only_until_they_fit_and_chunks_of_folds_go_first) {
  const Graph g = matmul(400, 700, 1000);
  const Derived roomy = derive(g, {}, lanes(64, 8, 8 << 20)), tight = derive(g, {}, lanes(64, 8, 20 << 10));
  EXPECT_EQ(roomy.program.kernels.back().schedule.find("cut"), std::string::npos);
  EXPECT_NE(tight.program.kernels.back().schedule.find("cut"), std::string::npos)
      << tight.program.kernels.back().schedule;
  EXPECT_THROW(legal(g, lanes(64, 8, 256)), Error); // no block fits
}
