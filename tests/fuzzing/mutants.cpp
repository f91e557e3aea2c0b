// Kernels of every builder, changed on purpose: checker, simulator and values find the change. Role programs of
// matrix products and attention, changed where their rings are waited for and given back.
// All: tang fuzz --mutants 200
#include <gtest/gtest.h>

#include "tang/base/hash.hpp"
#include "tang/fuzz/mutate.hpp"
#include "tang/ir/surface.hpp"
#include "tang/models/cases.hpp"

using namespace tang;

namespace {
// Dyadic values in [-1, 1), in the format of each input that has none.
bool fill(const ir::Graph& g, eval::Inputs& in) {
  uint64_t seed = 1;
  for (auto& n : g.nodes)
    if (auto* x = n.input(); x && !in.count(n.name)) {
      if (type_of(x->format) != expr::Type::real) return false;
      eval::Array a(eval::bound(x->shape), expr::Type::real);
      for (double& v : a.r) v = ir::rounded(double(int64_t(mix(seed++) >> 52)) / 2048 - 1, x->format);
      in[n.name] = a;
    }
  return true;
}

target::Target small_gpu(int64_t shared) { // little shared memory: tiles are small, kernels loop
  target::Facts f;
  f.workgroup = 64;
  f.shared_bytes = shared;
  return target::gpu_target("opencl", f);
}

std::vector<fuzz::Subject> subjects() {
  const std::vector<target::Target> rows = {target::c_target(4, 1), small_gpu(32 << 10), small_gpu(5 << 10)};
  std::vector<fuzz::Subject> out;
  for (auto& c : cases::builders) {
    size_t graphs = 0;
    c.run({[&](const ir::Graph& g, eval::Inputs in, double) {
      if (graphs >= rows.size() || !fill(g, in)) return;
      try {
        run::Options o;
        o.target = rows[graphs++];
        fuzz::Subject s{c.name, run::derive(g, o), in};
        int64_t points = 0;
        for (auto& l : s.derivation.kernels.kernels) points += kernel::workgroups(l.kernel);
        if (s.derivation.kernels.kernels.size() < 16 && points < 6000) out.push_back(std::move(s));
      } catch (const Error&) {} // its tiles do not fit
    }});
  }
  return out;
}

fuzz::Subject product(int64_t m, int64_t n, int64_t k) {
  ir::Builder b;
  ir::Tensor x = b.input("a", {m, k}, ir::Format::bf16), y = b.input("b", {n, k}, ir::Format::bf16);
  auto [i, j, l] = ir::axes<"i j l">();
  b.output(ir::map({i, j}, ir::sum(l, x(i, l) * y(j, l))), "out", ir::Format::bf16);
  run::Options o;
  o.target = target::hopper_target();
  fuzz::Subject s{"product", run::derive(b.graph(), o), {}};
  fill(b.graph(), s.inputs);
  return s;
}

fuzz::Subject softmax(int64_t heads, int64_t rows, int64_t keys, int64_t d) {
  ir::Builder b;
  auto input = [&](const char* name, int64_t n) { return b.input(name, {heads, n, d}, ir::Format::bf16); };
  ir::Tensor q = input("q", rows), k = input("k", keys), v = input("v", keys);
  auto [h, i, j, c, e] = ir::axes<"h i j c e">();
  ir::Scalar score = ir::sum(c, q(h, i, c) * k(h, j, c)) * 0.125, w = ir::exp(score - ir::max(j, score));
  b.output(ir::map({h, i, e}, ir::ratio(ir::sum(j, w * v(h, j, e)), ir::sum(j, w))), "out", ir::Format::bf16);
  run::Options o;
  o.target = target::hopper_target();
  fuzz::Subject s{"softmax", run::derive(b.graph(), o), {}};
  fill(b.graph(), s.inputs);
  return s;
}
} // namespace

TEST(mutants, a_sample_of_each_operator_over_the_builders) {
  const auto all = subjects();
  ASSERT_GE(all.size(), 20u);
  const auto m = fuzz::mutate(all, 20);
  std::printf("%s", fuzz::text(m).c_str());
  for (auto& op : fuzz::operators()) EXPECT_GE(m.at(op.name).sites, 20) << op.name;
  EXPECT_GE(fuzz::killed(m), 0.98);
}

TEST(mutants, a_sample_of_each_operator_over_role_programs) {
  std::vector<fuzz::RoleSubject> all;
  for (auto& s : {product(128, 256, 648), softmax(5, 128, 384, 16)})
    for (auto& r : fuzz::role_subjects(s)) all.push_back(r);
  ASSERT_EQ(all.size(), 2u);
  const auto m = fuzz::mutate(all, 20);
  std::printf("%s", fuzz::text(m).c_str());
  for (auto& op : fuzz::role_operators()) EXPECT_GE(m.at(op.name).sites, 20) << op.name;
  EXPECT_GE(fuzz::killed(m), 0.98);
}
