// Rows whose starts are no multiple of the runs that memory moves: they are counted from the run before them.
#include "lower/pipeline.hpp"
#include "tang/base/match.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/kernel/ragged.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
// A part of each row of a wider array.
Graph part_of_rows(int64_t m, int64_t wide, int64_t from, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, wide}, f), gain = b.input("gain", {n}, f);
  auto [i] = axes<"i">();
  const Axis j = axis("j", Extent(n));
  const Scalar v = x(i, Index(j) + Index(from));
  b.output(map({i, j}, gain(j) * v * recip(1.0 + sum(j, square(v)))), "y", f);
  return b.graph();
}

Graph norms(int64_t m, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, n}, f), gain = b.input("gain", {n}, f), bias = b.input("bias", {n}, f);
  auto [i, j] = axes<"i j">();
  const Scalar mean = sum(j, x(i, j)) / double(n), variance = sum(j, square(x(i, j) - mean)) / double(n);
  b.output(map({i, j}, (x(i, j) - mean) * recip(sqrt(variance + 1e-5)) * gain(j) + bias(j)), "y", f);
  return b.graph();
}

Graph softmax(int64_t m, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, n}, f);
  auto [i, j] = axes<"i j">();
  const Scalar e = exp(x(i, j) - max(j, x(i, j)));
  b.output(map({i, j}, e / sum(j, e)), "y", f);
  return b.graph();
}

// Pairs, and a value that reads its own column.
Graph places(int64_t m, int64_t n, Format f) {
  Builder b;
  Tensor x = b.input("x", {m, n}, f);
  auto [i, j] = axes<"i j">();
  const auto s = fold(argmax(), j, {x(i, j), iota(j)});
  b.output(map({i}, s[0]), "top");
  b.output(map({i}, s[1]), "at");
  b.output(map({i}, sum(j, masked(Index(j) + Index(i) < Index(n - 3), x(i, j)))), "some");
  return b.graph();
}

Derived derived(const Graph& g) {
  const target::Target t = target::cuda_target();
  Derived d = derive(g, {}, t);
  for (auto& l : d.program.kernels) l.kernel = kernel::legalize(l.kernel, t);
  return d;
}

// The longest run that a kernel's statements move at once, and how many remainders of addresses it computes.
std::pair<int, int> runs(const kernel::Kernel& k) {
  int run = 1, remainders = 0;
  for (auto& s : k.body)
    std::visit(Match{[&](const kernel::Apply& a) { run = std::max(run, a.deal.run); },
                     [&](const kernel::Fold& f) { run = std::max(run, f.deal.run); },
                     [&](const kernel::Let& l) { remainders += l.kind == kernel::Let::floor_div; }, [](const auto&) {}},
               s.node);
  return {run, remainders};
}

void expect_right(const Graph& g, int run, const std::string& what) {
  const Derived d = derived(g);
  for (auto& l : d.program.kernels) EXPECT_EQ(runs(l.kernel), std::pair(run, 1)) << what << "\n" << kernel::print(l.kernel);
  eval::Inputs in = random_inputs(g);
  for (auto& n : g.nodes)
    if (auto* x = n.input())
      for (double& v : in[n.name].r) v = expr::rounded(v, x->format);
  for (auto order : {kernel::Order::forward, kernel::Order::reverse}) {
    auto got = simulate(d, in, order);
    for (auto& [name, a] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(a)), 5e-3) << what << " " << name;
  }
}
} // namespace

TEST(lower_ragged, rows_of_any_odd_size_move_in_runs) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{3, 4099}, {2, 5001}, {5, 9002}, {2, 20003}})
    for (Format f : {Format::bf16, Format::f32}) {
      const std::string what = std::to_string(m) + " x " + std::to_string(n) + " " + expr::row(f).name;
      const int run = f == Format::bf16 ? 8 : 4;
      expect_right(softmax(m, n, f), run, "softmax " + what);
      expect_right(norms(m, n, f), run, "norms " + what);
      expect_right(places(m, n, f), run, "places " + what);
    }
}

TEST(lower_ragged, parts_of_rows_begin_where_their_address_says) {
  for (int64_t from : {0, 1, 6})
    for (int64_t wide : {5001, 5003}) expect_right(part_of_rows(4, wide, from, 4990, Format::bf16), 8, std::to_string(wide));
}

// Rows that begin at multiples of a run and end anywhere need no remainder.
TEST(lower_ragged, only_the_end_is_ragged_where_rows_begin_in_line) {
  Builder b;
  Tensor x = b.input("x", {4, 8192}, Format::bf16);
  auto [i] = axes<"i">();
  const Axis j = axis("j", Extent(8001));
  b.output(map({i}, sum(j, square(x(i, j)))), "y");
  const Derived d = derived(b.graph());
  for (auto& l : d.program.kernels) EXPECT_EQ(runs(l.kernel), std::pair(8, 0)) << kernel::print(l.kernel);
  const eval::Inputs in = random_inputs(b.graph());
  EXPECT_LT(eval::difference(simulate(d, in)["y"], eval::run(b.graph(), in).at("y")), 5e-3);
}

// What is left out matters: without the bounds a kernel reads beyond its arrays, and the simulator says so.
TEST(lower_ragged, bounds_keep_a_row_from_its_neighbours) {
  const Derived d = derived(softmax(3, 4099, Format::bf16));
  kernel::Kernel k = d.program.kernels.at(0).kernel;
  for (auto& s : k.body)
    if (auto* f = std::get_if<kernel::Fold>(&s.node)) f->limits.clear();
    else if (auto* a = std::get_if<kernel::Apply>(&s.node)) a->bounds.clear();
  EXPECT_FALSE(kernel::problems(k).empty());
}
